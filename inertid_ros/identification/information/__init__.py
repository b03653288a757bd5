"""Square-root information: what data determines of the parameters, in R factors of fixed size.

- ``information``: :class:`~.information.Information` of all channels; merging, weighting, residuals.
- ``earlier_equations``: those of an earlier result, weighted once and for all.
- ``compression``: samples to R factors, batch by batch.
- ``incremental_qr``: R factor of a growing number of rows.
- ``information_file``: information in files.
- ``data_checks``: whether data suffices for a fit.
- ``delay``: delay between torque and motion.
- ``residuals``: residuals of recordings, their robust scale and independent share.
- ``resolution``: error of channels by the preparation alone, the least deviation of a fit.
- ``block_scores``: scores of blocks, by which residuals move parameters more than noise would.
- ``outliers``: gross outliers.

It may import ``regressors`` and the rooms before it, and nothing else of identification.
"""
