"""Reports on more than one machine, or more of them than fit in memory.

`tally` makes a tally like any other; `ik.mle(tally)` is the same call, with the same certificate.
Dask is the extra ``ibukit[dask]``; rows in .npy files need no more than this machine.

**Which reports.** Counting reduces most reports to few numbers: 1e12 reports of k-RR are k counts,
16 k bytes with their labels. Then the work is reading, which the engine that has the table does
best (``Tally.from_table``), and the estimate takes O(k) once: 0.13 s for a million secrets. Rows of
bits are nearly all different, and are kept.

**What n rows of k bits take.** n ceil(k / 8) bytes of memory over all workers, and one pass over
them for each step. A row of 100 bits takes about 40 ns of one core for each pass. `mle` makes 5 to
10 passes, and once or twice makes a parabola from a tenth of the rows, which takes as long as two
passes. So 1e7 rows of 100 bits are 130 MB and 4 seconds of one core; 1e10 rows are 130 GB and a
minute and a half of 50 cores. A worker needs 250 MB beside its rows, and Dask begins to move rows
to disk where memory is 60 % full: 50 workers of 5 GB hold 1e10 rows. On this machine alone a block
of rows is in memory at a time, whatever n is.

**What travels in a pass.** theta, k doubles, to each worker; k + 2 doubles from each partition to
the worker that adds sixteen of them; one sum to the client. For a parabola, and for standard
errors, k x k doubles take the way back. With k = 100 and 1000 partitions that is 0.8 MB a pass and
80 MB a parabola, between workers; the client sees 0.8 and 80 kB. Tallies that are pooled with other
reports have counts on the client, 8 bytes for each report. To hand a task out takes Dask about a
millisecond, so partitions should be large: a million rows or more.

**The same bits.** Partial sums are added in the order of the partitions, by a tree that depends on
their number alone. The answer has the same bits for any number of workers of one kind of processor,
on this machine alone (from the same partitions), and where workers were lost. The others
compute again, from its source, all that a lost worker kept. A source that then gives other rows, as
random ones without a seed do, is found out: `DataChanged`.

On four processes of this machine, or with ``Client(address)`` on those of a cluster::

    client = dask.distributed.Client(n_workers=4, threads_per_worker=1)
    rows = dask.array.from_zarr("reports.zarr")  # of 0 and 1, shape (n, 100)
    estimate = ik.mle(ik.scale.tally(rows, ik.Rappor(100, epsilon=2.0), client))
"""

from ibukit.scale._block_tally import tally as tally
