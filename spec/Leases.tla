------------------------------- MODULE Leases -------------------------------
(***************************************************************************)
(* What a refinement of Ownership by a group with epochs of its members    *)
(* has to remember. What is granted changes partition by partition while   *)
(* no epoch of the group moves, so the number of a decision is not to be   *)
(* read from a state: it is counted. And whether a client has heard of a   *)
(* decision is not to be read from its epoch: what was granted when an     *)
(* answer left is kept, until the client gets that answer, and then for as *)
(* long as it goes by it. So a lease may be many decisions old (NOT-01).   *)
(* None of this says anything back to the group.                           *)
(***************************************************************************)
EXTENDS Naturals

VARIABLE decision  \* how often what is granted has changed
TypeDecision == decision \in Nat

VARIABLE coming    \* client -> the lease that goes with the answer on its way to it
TypeComing == \A c \in DOMAIN coming : coming[c].epoch \in Nat

VARIABLE heard     \* client -> the lease that came with the answer it goes by
TypeHeard == \A c \in DOMAIN heard : heard[c].epoch \in Nat

leases == <<decision, coming, heard>>

EveryLeaseHasItsType == TypeDecision /\ TypeComing /\ TypeHeard

NoLease == [holder |-> "", epoch |-> 0, things |-> {}]

LeasesInit(clients) ==
  /\ decision = 0
  /\ coming = [c \in clients |-> NoLease]
  /\ heard = [c \in clients |-> NoLease]

(***************************************************************************)
(* A step in which the grant goes from before to after. Of a client c:     *)
(* Leaves(c), that an answer leaves to Holder(c); OnItsWay(c), that one is *)
(* still to come; Gets(c), that it gets one; GoesBy(c), that it still goes *)
(* by one.                                                                 *)
(***************************************************************************)
LeasesNext(before, after, Holder(_), Leaves(_), OnItsWay(_), Gets(_), GoesBy(_)) ==
  /\ decision' = IF after = before THEN decision ELSE decision + 1
  /\ coming' = [c \in DOMAIN coming |->
       IF Leaves(c)
       THEN [holder |-> Holder(c), epoch |-> decision', things |-> after[Holder(c)]]
       ELSE IF OnItsWay(c) THEN coming[c] ELSE NoLease]
  /\ heard' = [c \in DOMAIN heard |->
       IF Gets(c) THEN coming[c] ELSE IF GoesBy(c) THEN heard[c] ELSE NoLease]

\* A lease of which more is made than was granted is one that nobody gave.
Of(lease, things) ==
  IF things \subseteq lease.things THEN lease ELSE [lease EXCEPT !.things = things]

\* Of clients that own and are told so: owned and told are functions of clients.
LeasesOf(owned, told) ==
  ({Of(heard[c], owned[c]) : c \in DOMAIN heard}
     \cup {Of(coming[c], told[c]) : c \in DOMAIN coming}) \ {NoLease}

NoLeaseIsOld ==
  \A c \in DOMAIN heard : heard[c] # NoLease => heard[c].epoch = decision
=============================================================================
