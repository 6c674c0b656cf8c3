---------------------------- MODULE OffsetStore -----------------------------
(***************************************************************************)
(* The offsets of a group as a coordinator keeps them: for each partition  *)
(* the entries that count, in the order of their records in the log. One   *)
(* of them is committed; the others are pending, each in a different       *)
(* transaction. These are functions; there are no variables.               *)
(***************************************************************************)
EXTENDS Naturals, Sequences

CONSTANTS
  Holders,      \* members of the group; each is a producer too
  Parts,        \* partitions
  MaxOffset,    \* how many records a partition has
  Transactions  \* how many transactions a producer may begin

ASSUME MaxOffset \in Nat \ {0} /\ Transactions \in Nat
ASSUME "" \notin Holders /\ Parts # {}

Entry == [offset : 0..MaxOffset, producer : Holders \cup {""},
          number : 0..Transactions, pending : BOOLEAN]

\* The entry of a plain commit, and the one that a fetch returns if nothing is
\* committed.
Plain(offset) ==
  [offset |-> offset, producer |-> "", number |-> 0, pending |-> FALSE]
Missing == Plain(0)

\* The entry of a commit in transaction n of h.
InTransaction(h, n, offset) ==
  [offset |-> offset, producer |-> h, number |-> n, pending |-> TRUE]

IsPendingOf(e, h) == e.pending /\ e.producer = h

IsStore(s) ==
  /\ DOMAIN s = Parts
  /\ \A t \in Parts : \A i \in 1..Len(s[t]) :
       /\ s[t][i] \in Entry
       /\ \A j \in 1..(i - 1) :
            \/ s[t][i].pending # s[t][j].pending
            \/ s[t][i].pending /\ s[t][i].producer # s[t][j].producer

NoOffsets == [t \in Parts |-> << >>]

-----------------------------------------------------------------------------
(***************************************************************************)
(* Reading. q is what is stored for one partition.                         *)
(***************************************************************************)

\* The offset that a fetch returns.
Visible(q) ==
  LET committed == SelectSeq(q, LAMBDA e : ~e.pending)
  IN IF committed = << >> THEN Missing ELSE committed[1]

\* Some transaction has yet to decide whether its offset counts.
IsPending(q) == \E i \in 1..Len(q) : q[i].pending

\* A fetch for stable offsets has to be sent again (O-FETCH-08).
Unstable(q) == IsPending(q)

\* It may expire, if it is old enough (O-EXP-11).
MayExpire(q) == ~IsPending(q)

(***************************************************************************)
(* Writing.                                                                *)
(***************************************************************************)

\* A plain commit replaces the committed offset (F-REPLAY-02).
WithCommit(q, offset) == Append(SelectSeq(q, LAMBDA e : e.pending), Plain(offset))

Without(q, h) == SelectSeq(q, LAMBDA e : ~IsPendingOf(e, h))

\* A later commit of a transaction replaces its earlier one (O-TXN-09).
WithPending(q, e) == Append(Without(q, e.producer), e)

\* The committed offset was written later, so it stays (O-TXN-08).
Overtaken(q, i) == \E j \in (i + 1)..Len(q) : ~q[j].pending

\* The transaction of h commits: its offset counts from now on.
AfterCommitMarker(q, h) ==
  LET places == {i \in 1..Len(q) : IsPendingOf(q[i], h)}
      i == CHOOSE n \in places : TRUE
      counts == [q EXCEPT ![i].pending = FALSE]
  IN CASE places = {} -> q
       [] Overtaken(q, i) -> Without(q, h)
       [] OTHER -> SelectSeq(counts, LAMBDA e : e.pending \/ e = counts[i])

\* The transaction of h aborts: its offset is dropped.
AfterAbortMarker(q, h) == Without(q, h)
=============================================================================
