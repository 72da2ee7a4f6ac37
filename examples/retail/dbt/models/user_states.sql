-- Every state of a user that the stream has delivered, also those that no load has seen.
select *, {{ loaded_at('changed_at') }} as loaded_at
from parquet.`{{ var('stream') }}/*/user.parquet`
