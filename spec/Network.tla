------------------------------ MODULE Network -------------------------------
(***************************************************************************)
(* Messages in flight as sets: delivery in any order, at any time. What    *)
(* else may happen to a message is selectable: Reorder here; loss,         *)
(* duplication and giving up are actions of ClassicGroup that Allowed      *)
(* names, each of them one of the operators below.                         *)
(*                                                                         *)
(* A request carries heard: whether its sender still waits for the answer. *)
(* A client waits for one answer at most, so this bit says all that a      *)
(* correlation id could say, and keeps the state finite.                   *)
(***************************************************************************)
CONSTANT Reorder  \* may a request given up be overtaken by a later one?

(***************************************************************************)
(* A request that somebody waits for comes after those that its sender     *)
(* gave up on, unless the network reorders: they travelled on an earlier   *)
(* connection.                                                             *)
(***************************************************************************)
Deliverable(net, r) ==
  \/ Reorder
  \/ ~r.heard
  \/ \A q \in net : q.from = r.from => q.heard \/ q = r

\* Nobody waits for the answer to the copy.
Duplicate(r) == [r EXCEPT !.heard = FALSE]

\* c no longer waits: its request stays on its way, its answer is not read.
GiveUpRequests(net, c) ==
  {IF r.from = c /\ r.heard THEN Duplicate(r) ELSE r : r \in net}
GiveUpReplies(net, c) == {y \in net : y.to # c}
=============================================================================
