"""Plans: finished motions, to be inspected, stored, checked and replayed."""
