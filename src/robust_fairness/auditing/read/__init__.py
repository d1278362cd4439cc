"""Tables without a documented schema: reading, column types, and labels of a dataset."""
