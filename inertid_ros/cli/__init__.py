"""Command line ``inertid``. Each command has a module that reads arguments, calls the library, prints text or JSON."""
