"""Facts with the version that was in force at their moment."""
