"""From a recording to :class:`~inertid_ros.core.samples.Samples`: clean channels, filtered motion and masks."""
