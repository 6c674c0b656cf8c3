--------------------------- MODULE ConsumerAssignor --------------------------
(***************************************************************************)
(* The assignor on the coordinator's side (M-TGT-02..06): the targets that *)
(* it may choose for the members of g, which all subscribe to the only     *)
(* topic. n is the number of partitions.                                   *)
(***************************************************************************)
EXTENDS ConsumerTypes

Existing(n) == {Partitions[i] : i \in 1..n}

\* The stored target of a member (M-TGT-04). A member that joined while
\* computing was blocked has none (M-TGT-09).
Stored(g, id) == IF id \in DOMAIN g.target THEN g.target[id] ELSE {}

Members(g)  == DOMAIN g.members
InOrder(S)  == SelectSeq(MemberIds, LAMBDA m : m \in S)

\* Static members come first, by instance id, then all others in the order of
\* their ids (A-SRANGE-02).
StaticMembers(g) == {m \in Members(g) : g.members[m].instanceId # ""}
MappedInstances(g) == SelectSeq(InstanceOrder, LAMBDA i :
                        \E m \in Members(g) : g.members[m].instanceId = i)
MemberOf(g, i) == CHOOSE m \in Members(g) : g.members[m].instanceId = i
MembersInOrder(g) == [k \in 1..Len(MappedInstances(g)) |-> MemberOf(g, MappedInstances(g)[k])]
                     \o InOrder(Members(g) \ StaticMembers(g))

\* The k-th member gets a contiguous share; the first ones get one partition
\* more (A-RANGE-01).
Min(a, b) == IF a < b THEN a ELSE b
Share(order, k, n) ==
  LET size  == n \div Len(order)
      extra == n % Len(order)
      start == (k - 1) * size + Min(k - 1, extra)
  IN {Partitions[i] : i \in (start + 1)..(start + size + IF k <= extra THEN 1 ELSE 0)}

RangeTargets(g, n) ==
  LET order == MembersInOrder(g)
      Index(m) == CHOOSE k \in 1..Len(order) : order[k] = m
  IN {[m \in Members(g) |-> Share(order, Index(m), n)]}

\* Sizes differ by at most one, and each member keeps as much of its last target
\* as its share allows (A-UHOM-04). The uniform assignor may choose any of
\* those.
IsBalanced(T) ==
  \A m, k \in DOMAIN T : Cardinality(T[m]) <= Cardinality(T[k]) + 1
IsSticky(g, T, n) ==
  \A m \in DOMAIN T :
    LET usable == Stored(g, m) \cap Existing(n)
    IN Cardinality(usable \cap T[m]) = Min(Cardinality(usable), Cardinality(T[m]))

UniformTargets(g, n) ==
  LET TargetOf(owner) == [m \in Members(g) |-> {p \in Existing(n) : owner[p] = m}]
  IN {T \in {TargetOf(owner) : owner \in [Existing(n) -> Members(g)]} :
        IsBalanced(T) /\ IsSticky(g, T, n)}

Targets(g, n) ==
  IF Assignor = "uniform" THEN UniformTargets(g, n) ELSE RangeTargets(g, n)
=============================================================================
