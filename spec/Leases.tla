------------------------------- MODULE Leases -------------------------------
(***************************************************************************)
(* The history that a group with epochs per member needs in order to       *)
(* refine Ownership. Grants change partition by partition while no epoch   *)
(* of the group moves, so a state does not show the number of a decision:  *)
(* it is counted. Nor does a client's epoch show whether the client knows  *)
(* of a decision. So when an answer leaves, the grant at that moment is    *)
(* kept until the client receives the answer, and then for as long as the  *)
(* client acts on it. A lease may therefore be many decisions old          *)
(* (NOT-01). These variables never influence the group.                    *)
(***************************************************************************)
EXTENDS Naturals

VARIABLE decision  \* how often the grant has changed
TypeDecision == decision \in Nat

VARIABLE coming    \* client -> the lease that belongs to the answer on its way to it
TypeComing == \A c \in DOMAIN coming : coming[c].epoch \in Nat

VARIABLE heard     \* client -> the lease that came with the answer it acts on
TypeHeard == \A c \in DOMAIN heard : heard[c].epoch \in Nat

leases == <<decision, coming, heard>>

EveryLeaseHasItsType == TypeDecision /\ TypeComing /\ TypeHeard

NoLease == [holder |-> "", epoch |-> 0, things |-> {}]

LeasesInit(clients) ==
  /\ decision = 0
  /\ coming = [c \in clients |-> NoLease]
  /\ heard = [c \in clients |-> NoLease]

(***************************************************************************)
(* A step in which the grant changes from before to after. For a client c: *)
(*    Leaves(c)     an answer leaves to Holder(c)                          *)
(*    OnItsWay(c)   an answer is still to come                             *)
(*    Gets(c)       it receives one                                        *)
(*    GoesBy(c)     it still acts on one                                   *)
(***************************************************************************)
LeasesNext(before, after, Holder(_), Leaves(_), OnItsWay(_), Gets(_), GoesBy(_)) ==
  /\ decision' = IF after = before THEN decision ELSE decision + 1
  /\ coming' = [c \in DOMAIN coming |->
       IF Leaves(c)
       THEN [holder |-> Holder(c), epoch |-> decision', things |-> after[Holder(c)]]
       ELSE IF OnItsWay(c) THEN coming[c] ELSE NoLease]
  /\ heard' = [c \in DOMAIN heard |->
       IF Gets(c) THEN coming[c] ELSE IF GoesBy(c) THEN heard[c] ELSE NoLease]

\* A lease that claims more than was granted becomes one that was never given.
Of(lease, things) ==
  IF things \subseteq lease.things THEN lease ELSE [lease EXCEPT !.things = things]

\* The leases of the clients: owned and told are functions of clients.
LeasesOf(owned, told) ==
  ({Of(heard[c], owned[c]) : c \in DOMAIN heard}
     \cup {Of(coming[c], told[c]) : c \in DOMAIN coming}) \ {NoLease}

NoLeaseIsOld ==
  \A c \in DOMAIN heard : heard[c] # NoLease => heard[c].epoch = decision
=============================================================================
