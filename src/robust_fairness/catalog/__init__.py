"""The few Kedro dataset classes that kedro-datasets lacks: versioned, atomic, without pickle."""
