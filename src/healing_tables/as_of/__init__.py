"""Facts with the version that was in force at their moment, also as the dimension was known then."""
