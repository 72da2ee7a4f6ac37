"""dbt plugin: lets dbt-spark run Python models on its own Spark session, and operations do what macros cannot.

dbt-core imports every top-level module named ``dbt_*``, in every project of the environment. So this one imports
nothing but dbt's plugin class and never raises. Adapters other than dbt-spark's get the methods of operations only.
"""

from __future__ import annotations

import logging
import sys

__all__ = ["plugins"]

plugins: list[type] = []

try:
    from dbt.plugins.manager import dbtPlugin
except ImportError:  # the library is used without dbt
    pass
else:

    class SparkSessionModels(dbtPlugin):
        """Gives dbt-spark the submission method ``session``, and every adapter methods for operations."""

        def initialize(self) -> None:
            # dbt loads the profile, and with it the adapter, before plugins: no dbt-spark yet means another adapter
            spark = sys.modules.get("dbt.adapters.spark")
            try:
                from dbt.adapters.factory import FACTORY

                from dbt_healing_tables.adapter import with_session_models
                from dbt_healing_tables.methods import add_methods

                if spark is not None:
                    spark.Plugin.adapter = with_session_models(spark.Plugin.adapter)
                for plugin in FACTORY.plugins.values():
                    add_methods(plugin.adapter)
            except Exception:  # a broken plugin must not break projects that do not use it
                logging.getLogger(__name__).debug("the adapters are not changed", exc_info=True)

    plugins.append(SparkSessionModels)
