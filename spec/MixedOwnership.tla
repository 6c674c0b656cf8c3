--------------------------- MODULE MixedOwnership ---------------------------
(***************************************************************************)
(* The mixed group refines Ownership, over its conversions: what the log   *)
(* says that members hold is granted, whichever protocol it is of; what a  *)
(* client goes by is the lease that came with its last SyncGroup, or its   *)
(* last good heartbeat, however old it is by now. A client that believes   *)
(* to own more than that, or is told more than the log has, has a lease    *)
(* that nobody gave. Who was fenced keeps an old lease until it hears of   *)
(* that (NOT-01).                                                          *)
(***************************************************************************)
EXTENDS MCMixedMutants, Leases

\* Static members are one holder over their restarts, others one per id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
HolderOf(c) == Identity(IdOf(c), InstanceOf[c])

ClassicGrant(record, k) ==
  UNION {l.assignment : l \in {n \in record.members :
                                 Identity(n.memberId, n.instanceId) = k}}

ConsumerGrant(h, k) ==
  UNION {Consumer!Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                                   Identity(n, h.members[n].instanceId) = k}}

GrantedBy(l) ==
  [k \in Ids \cup Instances |->
     IF l.protocol = "classic" THEN ClassicGrant(l.classic, k) ELSE ConsumerGrant(l.consumer, k)]

\* What gives a lease: a SyncGroup of the one protocol, a heartbeat of the other.
Gives(y) == y.error = "NONE" /\ (IsClassic(y) => y.api = "SyncGroup")
Good(c, ys) == \E y \in ys : y.to = c /\ Gives(y)

AnswerLeaves(c) == Good(c, replies' \ replies)
AnswerIsOnItsWay(c) == Good(c, replies')
ClientGets(c) ==
  \E y \in replies \ replies' :
    /\ y.to = c /\ Gives(y)
    /\ IF IsClassic(y) THEN classic'[c] = AfterSyncReply(classic[c], y)
       ELSE consumer'[c] = AfterHeartbeatReply(consumer[c], y)
ClientGoesOn(c) == classic'[c].owned # {} \/ consumer'[c].state = "member"

CountedInit == Init /\ LeasesInit(Clients)

CountedNext ==
  /\ Next
  /\ LeasesNext(GrantedBy(log), GrantedBy(log'), HolderOf,
                AnswerLeaves, AnswerIsOnItsWay, ClientGets, ClientGoesOn)

CountedSpec == CountedInit /\ [][CountedNext]_<<vars, leases>>

OwnedBy == [c \in Clients |-> Owned(c)]
ToldTo == [c \in Clients |->
            UNION {y.assignment : y \in {z \in replies : z.to = c /\ Gives(z)}}]

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Things <- Parts,
  epoch <- decision, grant <- GrantedBy(log), leases <- LeasesOf(OwnedBy, ToldTo)

TheGroupKeepsOwnership == Abstract!Spec
=============================================================================
