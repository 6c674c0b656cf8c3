--------------------------- MODULE MixedOwnership ---------------------------
(***************************************************************************)
(* The mixed group refines Ownership, across its conversions. The grant is *)
(* what members hold according to the log, whichever protocol that is. The *)
(* lease of a client came with the last SyncGroup or the last good         *)
(* heartbeat that it acts on, however old that is. A client that believes  *)
(* to own more than its lease, or receives more than the log grants, has a *)
(* lease that was never given. A fenced member keeps an old lease until it *)
(* learns of the fence (NOT-01).                                           *)
(***************************************************************************)
EXTENDS MCMixedMutants, Leases

\* A static member is one holder across its restarts; any other holder is a
\* member id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
HolderOf(c) == Identity(MemberIdOf(c), InstanceOf[c])

ClassicGrant(record, k) ==
  UNION {l.assignment : l \in {n \in record.members :
                                 Identity(n.memberId, n.instanceId) = k}}

ConsumerGrant(h, k) ==
  UNION {Consumer!Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                                   Identity(n, h.members[n].instanceId) = k}}

GrantedBy(l) ==
  [k \in Ids \cup Instances |->
     IF l.protocol = "classic" THEN ClassicGrant(l.classic, k) ELSE ConsumerGrant(l.consumer, k)]

\* Answers that give a lease: SyncGroup in one protocol, a heartbeat in the
\* other.
GivesLease(y) == y.error = "NONE" /\ (IsClassic(y) => y.api = "SyncGroup")
HasGoodAnswer(c, ys) == \E y \in ys : y.to = c /\ GivesLease(y)

AnswerIsSent(c) == HasGoodAnswer(c, replies' \ replies)
AnswerIsInFlight(c) == HasGoodAnswer(c, replies')
ClientReceivesLease(c) ==
  \E y \in replies \ replies' :
    /\ y.to = c /\ GivesLease(y)
    /\ IF IsClassic(y) THEN classic'[c] = AfterSyncReply(classic[c], y)
       ELSE consumer'[c] = AfterHeartbeatReply(consumer[c], y)
ClientUsesLease(c) == classic'[c].owned # {} \/ consumer'[c].state = "member"

HistoryInit == Init /\ LeasesInit(Clients, Parts)

HistoryNext ==
  /\ Next
  /\ LeasesNext(GrantedBy(log), GrantedBy(log'), HolderOf,
                AnswerIsSent, AnswerIsInFlight, ClientReceivesLease, ClientUsesLease)

HistorySpec == HistoryInit /\ [][HistoryNext]_<<vars, leases>>

OwnedByClient == [c \in Clients |-> Owned(c)]
SentTo == [c \in Clients |->
            UNION {y.assignment : y \in {z \in replies : z.to = c /\ GivesLease(z)}}]

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Resources <- Parts,
  epoch <- decision, grant <- GrantedBy(log), leases <- ClientLeases(OwnedByClient, SentTo)

TheGroupRefinesOwnership == Abstract!Spec

Single(p) == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Resources <- {p}, epoch <- since[p], leases <- LeasesOf(p),
  grant <- [h \in Ids \cup Instances |-> GrantedBy(log)[h] \cap {p}]

\* Every accepted commit is one that Ownership allows: its client has a lease for the
\* partition, and no decision about that partition is newer (INV-COMMIT-01, M-PE-08).
OwnershipAllowsEveryCommit ==
  \A c \in Clients : \A p \in Owned(c) :
    CommitIsAccepted(c, p) => Single(p)!MayCommit(HolderOf(c), p)
=============================================================================
