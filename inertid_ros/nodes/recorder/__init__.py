"""The recorder: joint states and sensor topics to a crash-safe bag and to synchronised batches."""
