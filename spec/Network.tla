------------------------------ MODULE Network -------------------------------
(***************************************************************************)
(* Messages in flight as sets: delivery in any order, at any time. Which   *)
(* other faults a message may meet is selectable. Reordering is the        *)
(* constant here; loss, duplication and giving up are actions of           *)
(* ClassicGroup, selected by Allowed, and each uses one of the operators   *)
(* below.                                                                  *)
(*                                                                         *)
(* The field awaited of a request says whether its sender still waits for  *)
(* the answer. A client waits for at most one answer, so this bit replaces *)
(* a correlation id and keeps the state finite.                            *)
(***************************************************************************)
CONSTANT Reorder  \* may a later request overtake one that was given up?

ASSUME Reorder \in BOOLEAN

(***************************************************************************)
(* A request with a waiting sender is delivered after those that the       *)
(* sender gave up on, unless the network reorders: they travelled on an    *)
(* earlier connection.                                                     *)
(***************************************************************************)
Deliverable(net, r) ==
  \/ Reorder
  \/ ~r.awaited
  \/ \A q \in net : q.from = r.from => q.awaited \/ q = r

\* A copy, for whose answer no client waits.
Duplicate(r) == [r EXCEPT !.awaited = FALSE]

\* c no longer waits: its request stays in flight, its answer is not read.
GiveUpRequests(net, c) ==
  {IF r.from = c /\ r.awaited THEN Duplicate(r) ELSE r : r \in net}
GiveUpReplies(net, c) == {y \in net : y.to # c}
=============================================================================
