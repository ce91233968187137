"""A backend that is several: each device of a module executes its partitions."""
