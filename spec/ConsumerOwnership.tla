-------------------------- MODULE ConsumerOwnership -------------------------
(***************************************************************************)
(* The consumer group refines Ownership: what the log says that members    *)
(* hold (A and R) is granted; what a client goes by is the lease that came *)
(* with its last good answer, however old it is by now. A client that      *)
(* believes to own more than that, or is told more than the log has, has a *)
(* lease that nobody gave. Who was fenced keeps an old lease until it      *)
(* hears of that (NOT-01).                                                 *)
(***************************************************************************)
EXTENDS MCConsumerMutants, Leases

\* Static members are one holder over their restarts, others one per id.
Identity(id, inst) == IF inst # "" THEN inst ELSE id
HolderOf(c) == Identity(client[c].memberId, client[c].instanceId)

GrantedBy(h) ==
  [k \in Ids \cup Instances |->
     UNION {Holding(h.members[m]) : m \in {n \in DOMAIN h.members :
                                             Identity(n, h.members[n].instanceId) = k}}]

\* A good answer to c is in ys; those in between tell of no lease.
Good(c, ys) == \E y \in ys : y.to = c /\ y.error = "NONE"

AnswerLeaves(c) == Good(c, replies' \ replies)
AnswerIsOnItsWay(c) == Good(c, replies')
ClientGets(c) ==
  \E y \in replies \ replies' : /\ y.to = c /\ y.error = "NONE"
                                /\ client'[c] = AfterReply(client[c], y)
ClientGoesOn(c) == client'[c].state = "member"

CountedInit == Init /\ LeasesInit(Clients)

CountedNext ==
  /\ Next
  /\ LeasesNext(GrantedBy(log), GrantedBy(log'), HolderOf,
                AnswerLeaves, AnswerIsOnItsWay, ClientGets, ClientGoesOn)

CountedSpec == CountedInit /\ [][CountedNext]_<<vars, leases>>

OwnedBy == [c \in Clients |-> client[c].owned]
ToldTo == [c \in Clients |-> UNION {y.assignment : y \in {z \in replies : z.to = c}}]

Abstract == INSTANCE Ownership WITH
  Holders <- Ids \cup Instances, Things <- Parts,
  epoch <- decision, grant <- GrantedBy(log), leases <- LeasesOf(OwnedBy, ToldTo)

TheGroupKeepsOwnership == Abstract!Spec
=============================================================================
