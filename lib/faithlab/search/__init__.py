"""The order of the features that a deletion metric likes best, searched for on the engine.

Wang, Wang: "Benchmarking Deletion Metrics with the Principled Explanations" (TRACE), 2024. Among all orders (most
relevant first) of an input's F features find the one with the best sum over all its prefixes, with f the score:

    Mo      minimise MoRF = sum over k of f(x without the first k)                      (TRACE-Mo, eq. 3)
    Le      maximise LeRF = sum over k of f(x without the last k)                       (TRACE-Le, eq. 3)
    Le-Mo   maximise LeRF - MoRF                                                        (TRACE-Le-Mo, section 3)

The paper prints "min" for TRACE-Le, too: a misprint, since a high LeRF is good. Logits (-y) or probabilities (-p) are
the output of the score.

The paper's searches are `greedy`, `anneal` and the complete search, `bound`. Ours is `best`: greedy search from both
ends, refined by `insert`. It finds more in fewer forwards. How far that is from the optimum say `optimum`, exact for a
few features, `ceiling`, a bound for any number, and `limit`, an estimate. Another search is a function from a step and
a state to the next state, as tabu search and the genetic algorithm, which the paper names beside its own:
`faithlab.search.chains` asks, keeps the best, and takes it up again after an interrupt.

What is fast: an order is a chain of subsets, and a step asks only about the subsets that it changes. The chains of all
images and restarts go in lock-step, so that their questions fill whole forwards. Annealing of a probability gives a
proposal up as soon as the answers that are left would not be enough. `Remembered` answers a subset that was asked
before without a forward.

What is promised: random numbers belong to (seed, image, step), and a chain hears the answers to its own questions only.
So where the score gives an input the same number in any batch, an image takes the same steps in any batch, beside any
number of restarts, with or without a memory, a range, an interrupt or a file. A network's answers differ in their last
bits by the other inputs of the forward, the number of threads and the processor. A decision that is as close as that
can fall either way, and paths part. Values are still those of the orders returned, up to rounding, and the search is as
good; orders and paths may differ.
"""

from faithlab.search.annealing import anneal
from faithlab.search.chains import OBJECTIVES, Trajectory
from faithlab.search.construction import best, greedy
from faithlab.search.insertion import insert
from faithlab.search.memory import Remembered
from faithlab.search.orders import NEIGHBOURS, heat_map, random_orders
from faithlab.search.subsets import answers, bound, ceiling, limit, lookup, optimum
