"""The merge itself: attempts, retries, and the tables beside the dimension."""
