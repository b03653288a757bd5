"""What everything stands on; imports nothing else of the package.

- ``arrays``: the array type.
- ``blas_threads``: one thread for linear algebra.
- ``causes``: what findings may have as a cause, with the remedies, in one table.
- ``errors``: the errors that a user can act on.
- ``expressions``: formulas of signals, as a configuration gives them.
- ``findings``: :class:`~.findings.Finding`, what a check saw, its likely cause and the remedy.
- ``foreign_content``: what stands in a file in place of its content, such as a pointer of git-lfs.
- ``outputs``: files and directories that appear complete or not at all, and replace nothing else.
- ``qr``: R factors and marginal Hessians.
- ``rotations``: quaternions, rotation matrices, cross products, many at once.
- ``samples``: :class:`~.samples.Samples`, prepared motion and measured forces of one experiment.
- ``spectral_window``: window of spectra that noise is estimated from.
- ``undecimated_velocity``: joint velocity at the rate of the recording, for what is not linear in it.
- ``worker``: functions in processes of their own, with progress and time limits.
"""
