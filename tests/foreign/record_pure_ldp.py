"""pure-ldp: its servers on reports that are given,
and the levels that its RAPPOR chooses and says it has.
"""

from importlib.metadata import version

from pure_ldp.frequency_oracles import DEServer, HEServer, RAPPORClient, RAPPORServer, UEServer

from foreign.inputs import BITS, EPSILON, REPORTS, SECRETS
from foreign.record import write

names = [x + 1 for x in range(SECRETS)]  # its secrets are 1..d


def estimates(server, reports):
    server.aggregate_all(list(reports))
    return [server.estimate(x, suppress_warnings=True) for x in names]


unary = BITS.astype(float)
client = RAPPORClient(0.5, 32, [])
write(
    "pure_ldp",
    "pure-ldp",
    version("pure-ldp"),
    {
        "DE": estimates(DEServer(EPSILON, SECRETS), REPORTS),
        "SUE": estimates(UEServer(EPSILON, SECRETS), unary),
        "OUE": estimates(UEServer(EPSILON, SECRETS, use_oue=True), unary),
        "SHE": estimates(HEServer(EPSILON, SECRETS), 2 * unary - 0.5),
        "RAPPOR f of 3 and 12": [client.convert_eps_to_f(3.0), client.convert_eps_to_f(12.0)],
        "RAPPOR epsilon of f = 1/2, 2 hash functions": RAPPORServer(0.5, 32, 2, 10).epsilon,
    },
)
