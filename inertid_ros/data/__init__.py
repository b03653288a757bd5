"""What was measured: recordings, bags, preparation into samples."""
