"""Reports on more than one machine, or more of them than fit in memory.

`tally` makes a tally like any other; `ik.mle(tally)` is the same call, with the same certificate.
Dask comes with the extra ``ibukit[dask]``; for rows in .npy files this machine is enough.

**Which reports.** Counting reduces most reports to few numbers: 1e12 reports of k-RR are k counts,
16 k bytes with their labels. Then most of the work is reading, which the engine that has the table
does best (``Tally.from_table``), and the estimate takes O(k) once: 0.13 s for a million secrets.
Rows of bits, however, are nearly all different, and are kept.

**What n rows of k bits take.** They take n ceil(k / 8) bytes of memory over all workers, and one
pass over them for each step. A row of 100 bits takes about 40 ns of one core for each pass. `mle`
makes 5 to 10 passes. Once or twice it also computes a parabola, the second-order approximation of
the log-likelihood, from a tenth of the rows, which takes as long as two passes. So 1e7 rows of 100
bits take 130 MB and 4 seconds of one core; 1e10 rows take 130 GB and a minute and a half of 50
cores. A worker needs 250 MB beside its rows, and Dask begins to move rows to disk when memory is 60
% full, so 50 workers with 5 GB each can hold 1e10 rows. On this machine alone only one block of
rows at a time is in memory, whatever n is.

**What travels in a pass.** theta, which is k doubles, goes to each worker; k + 2 doubles go from
each partition to the worker that adds the sums of sixteen partitions; and one sum goes to the
client. For a parabola, and for standard errors, k x k doubles go the same way as these sums. With k
= 100 and 1000 partitions this is 0.8 MB for a pass and 80 MB for a parabola between workers; the
client receives 0.8 kB and 80 kB. Tallies that are pooled with other reports have counts on the
client, which take 8 bytes for each report. Dask takes about a millisecond to hand out a task, so
partitions should be large: a million rows or more.

**The same to the last bit.** Partial sums are added in the order of the partitions, by a tree that
depends only on the number of partitions. So on one kind of processor the answer is the same to the
last bit for any number of workers, on this machine without workers (from the same partitions), and
even if workers were lost. The other workers compute again, from its source, all that a lost worker
kept. If the source then gives other rows, as random rows without a seed would be, this is noticed,
and raises `DataChanged`.

On four processes of this machine, or with ``Client(address)`` on those of a cluster::

    client = dask.distributed.Client(n_workers=4, threads_per_worker=1)
    rows = dask.array.from_zarr("reports.zarr")  # of 0 and 1, shape (n, 100)
    estimate = ik.mle(ik.scale.tally(rows, ik.Rappor(100, epsilon=2.0), client))
"""

from ibukit.scale._block_tally import tally as tally
