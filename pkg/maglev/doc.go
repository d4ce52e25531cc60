// Package maglev builds the tables by which the dataplane finds the backend of a new flow: Maglev hashing, Eisenbud et
// al., "Maglev: A Fast and Reliable Software Network Load Balancer", NSDI 2016, section 3.4. It is pure: a table is a
// function of the keys and weights of its backends and of its size M, the same on every node and architecture,
// whatever the order of the input.
//
// # How a table is made
//
// Another program gets the same table if it does the following.
//
//	h = XXH64 of the key's bytes with the seed Seed
//	n = 10, 12, 14 or 16, the bits of M; mask = 2^n - 1, half = n / 2
//	mix(i): i = (i + h)         * (h >> 32 | 1)  & mask; i = i ^ i >> half
//	        i = (i + (h >> 16)) * (h >> 48 | 1)  & mask; i = i ^ i >> half
//	        i =  i              * 0x9e3779b1     & mask; i = i ^ i >> half
//	a backend's permutation = mix(0), mix(1), ... mix(mask), without those that are not below M
//
// Each step of mix can be undone, so that a permutation has every slot once. It takes the place of the paper's
// (offset + j * skip) mod M: two of those may run alongside each other for long, when one's skip is a small multiple of the
// other's, and then a removal moves up to a third of the table. These are as good as permutations drawn at random: of
// 6,000 removals of one of three backends the worst moved 2 % of 1,021 slots besides the backend's own, in place of 28 %.
//
// There are rounds r = 1, 2, ... until no slot is free, in which the backends have their turns: the heaviest first, equal
// weights in the order of their keys' bytes. In a turn a backend gets the first slot of its permutation that is still
// free. Its weight w and the largest weight W of the table say in which rounds it has a turn: those with
// ceil(r * w / W) > ceil((r - 1) * w / W). With equal weights that is every round, as in the paper. Only the ratios of
// weights matter: 1 and 2 make the table of 100 and 200.
//
// # What it promises
//
//   - Equal weights: the slots of two backends differ by 1 at most.
//   - Weights: of n backends, one whose weight is the part s of the sum has more than s * (M - n) - 1 and fewer than
//     s * M + 2 slots. M is at least 100 n by Size's rule, as far as the sizes go: that is 1 % and one slot at most
//     below its share.
//   - Every backend with a weight has a slot.
//   - A backend that goes or comes moves its own slots, and few others. Tests bound how many; see TestDisruption.
//
// It never looks at health, and it knows neither flows nor VIPs.
package maglev
