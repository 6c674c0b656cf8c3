-------------------------- MODULE ConsumerOwnership -------------------------
(***************************************************************************)
(* The consumer group refines Ownership. The grant is what members hold (A *)
(* and R) according to the log. The lease of a client came with the last   *)
(* good answer that it acts on, however old that is. A client that         *)
(* believes to own more than its lease, or receives more than the log      *)
(* grants, has a lease that was never given. A fenced member keeps an old  *)
(* lease until it learns of the fence (NOT-01).                            *)
(***************************************************************************)
EXTENDS MCConsumerMutants, Leases

\* A static member is one holder across its restarts; any other holder is a
\* member id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
HolderOf(c) == Identity(client[c].memberId, client[c].instanceId)

GrantedBy(h) ==
  [k \in Ids \cup Instances |->
     UNION {Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                             Identity(n, h.members[n].instanceId) = k}}]

\* ys contains a good answer to c. An error answer carries no lease.
HasGoodAnswer(c, ys) == \E y \in ys : y.to = c /\ y.error = "NONE"

AnswerIsSent(c) == HasGoodAnswer(c, replies' \ replies)
AnswerIsInFlight(c) == HasGoodAnswer(c, replies')
ClientReceivesLease(c) ==
  \E y \in replies \ replies' : /\ y.to = c /\ y.error = "NONE"
                                /\ client'[c] = AfterReply(client[c], y)
ClientUsesLease(c) == client'[c].state = "member"

HistoryInit == Init /\ LeasesInit(Clients, Parts)

HistoryNext ==
  /\ Next
  /\ LeasesNext(GrantedBy(log), GrantedBy(log'), HolderOf,
                AnswerIsSent, AnswerIsInFlight, ClientReceivesLease, ClientUsesLease)

HistorySpec == HistoryInit /\ [][HistoryNext]_<<vars, leases>>

OwnedByClient == [c \in Clients |-> client[c].owned]
SentTo == [c \in Clients |-> UNION {y.assignment : y \in {z \in replies : z.to = c}}]

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
  \A c \in Clients : \A p \in client[c].owned :
    CommitIsAccepted(c, p) => Single(p)!MayCommit(HolderOf(c), p)
=============================================================================
