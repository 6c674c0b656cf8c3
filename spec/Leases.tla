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

VARIABLE sentLease  \* client -> the lease that belongs to the answer on its way to it
TypeSentLease == \A c \in DOMAIN sentLease : sentLease[c].epoch \in Nat

VARIABLE receivedLease  \* client -> the lease that came with the answer it acts on
TypeReceivedLease == \A c \in DOMAIN receivedLease : receivedLease[c].epoch \in Nat

VARIABLE since  \* resource -> the decision that gave it to its present holder, or took it from the last
TypeSince == \A r \in DOMAIN since : since[r] \in 0..decision

leases == <<decision, sentLease, receivedLease, since>>

EveryLeaseHasItsType == TypeDecision /\ TypeSentLease /\ TypeReceivedLease /\ TypeSince

NoLease == [holder |-> "", epoch |-> 0, resources |-> {}]

LeasesInit(clients, resources) ==
  /\ decision = 0
  /\ since = [r \in resources |-> 0]
  /\ sentLease = [c \in clients |-> NoLease]
  /\ receivedLease = [c \in clients |-> NoLease]

(***************************************************************************)
(* A step in which the grant changes from before to after. For a client c: *)
(*    IsSent(c)      an answer is sent to Holder(c)                        *)
(*    IsInFlight(c)  an answer is on its way                               *)
(*    IsReceived(c)  c receives one                                        *)
(*    IsInUse(c)     c still acts on one                                   *)
(***************************************************************************)
LeasesNext(before, after, Holder(_), IsSent(_), IsInFlight(_), IsReceived(_), IsInUse(_)) ==
  /\ decision' = IF after = before THEN decision ELSE decision + 1
  /\ since' = [r \in DOMAIN since |->
       IF \A h \in DOMAIN after : r \in before[h] <=> r \in after[h] THEN since[r] ELSE decision']
  /\ sentLease' = [c \in DOMAIN sentLease |->
       IF IsSent(c)
       THEN [holder |-> Holder(c), epoch |-> decision', resources |-> after[Holder(c)]]
       ELSE IF IsInFlight(c) THEN sentLease[c] ELSE NoLease]
  /\ receivedLease' = [c \in DOMAIN receivedLease |->
       IF IsReceived(c) THEN sentLease[c] ELSE IF IsInUse(c) THEN receivedLease[c] ELSE NoLease]

\* A lease that claims more than was granted becomes one that was never given.
ClaimedLease(lease, resources) ==
  IF resources \subseteq lease.resources THEN lease
  ELSE [lease EXCEPT !.resources = resources]

\* The leases of the clients: owned and sent are functions of clients.
ClientLeases(owned, sent) ==
  ({ClaimedLease(receivedLease[c], owned[c]) : c \in DOMAIN receivedLease}
     \cup {ClaimedLease(sentLease[c], sent[c]) : c \in DOMAIN sentLease}) \ {NoLease}

(***************************************************************************)
(* Ownership of one resource alone. Decisions about others do not matter   *)
(* to its holder, so its epoch is the last decision about it, and a lease  *)
(* from then on is a lease of that epoch.                                  *)
(***************************************************************************)
LeasesOf(r) ==
  {[holder |-> l.holder, resources |-> l.resources \cap {r},
    epoch |-> IF l.epoch >= since[r] THEN since[r] ELSE l.epoch]
   : l \in {sentLease[c] : c \in DOMAIN sentLease}
            \cup {receivedLease[c] : c \in DOMAIN receivedLease}}

NoLeaseIsEverOld ==
  \A c \in DOMAIN receivedLease :
    receivedLease[c] # NoLease => receivedLease[c].epoch = decision
=============================================================================
