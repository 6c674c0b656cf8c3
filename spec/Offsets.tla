------------------------------- MODULE Offsets ------------------------------
(***************************************************************************)
(* How the positions of a group outlive its members: an owner starts where *)
(* its predecessor stopped, processes records, and commits, plainly or in  *)
(* a transaction. Ownership decides who owns what, and Durable keeps what  *)
(* is written; how they do it does not matter here. docs/closed-system.md, *)
(* part five, is the contract of this module.                              *)
(*                                                                         *)
(* System is what members, coordinator, log and the transaction            *)
(* coordinator do; Environment is what happens to them. Only System is     *)
(* fair.                                                                   *)
(***************************************************************************)
EXTENDS OffsetStore, Environment

CONSTANTS
  PlainCommitters,        \* members that commit plainly
  TransactionalCommitters,  \* members that commit in transactions; a member may do both
  Decisions,      \* what the group may grant
  Epochs,         \* how many decisions there may be
  RequireStable   \* do members ask for stable offsets?

ASSUME PlainCommitters \cup TransactionalCommitters \subseteq Holders
ASSUME Decisions \subseteq [Holders -> SUBSET Parts]
ASSUME Epochs \in Nat /\ RequireStable \in BOOLEAN
ASSUME Allowed \subseteq {"GroupDecides", "MemberGivesUp", "MemberRestarts",
                        "TransactionTimesOut", "OffsetIsDeleted", "OffsetExpires",
                        "CoordinatorFailsOver"}

Unknown == MaxOffset + 1  \* the position before the first fetch

-----------------------------------------------------------------------------
VARIABLE epoch  \* number of the last decision
TypeEpoch == epoch \in 0..Epochs

VARIABLE grant  \* that decision: who shall own what
TypeGrant == grant \in [Holders -> SUBSET Parts]

VARIABLE lease  \* the decision that a member last learned of, and what it got
TypeLease == lease \in [Holders -> [epoch : 0..Epochs, resources : SUBSET Parts]]

VARIABLE log  \* the offsets as far as they are replicated
TypeLog == IsStore(log)

\* Batches written, not yet replicated, oldest first: the offsets after each,
\* the answers that wait, whose marker it is, which offsets expired or were
\* deleted.
VARIABLE unreplicated
TypeUnreplicated ==
  \A i \in 1..Len(unreplicated) :
    /\ IsStore(unreplicated[i].store)
    /\ unreplicated[i].ends \subseteq Holders
    /\ unreplicated[i].expired \subseteq Parts
    /\ unreplicated[i].deleted \subseteq Parts

VARIABLE member  \* the positions of each member, and what it has not committed
TypeMember == member \in [Holders ->
  [position : [Parts -> 0..Unknown], dirty : SUBSET Parts, waiting : BOOLEAN,
   begun : {"none", "open", "failed"}]]

\* The transaction coordinator's state of each producer: the last transaction
\* and its state, the offsets that it knows to be written in it, and which
\* transactions were aborted.
VARIABLE txn
TypeTxn == txn \in [Holders ->
  [number : 0..Transactions, state : {"none", "open", "committing", "aborting"},
   offsets : [Parts -> 0..MaxOffset], aborted : SUBSET (1..Transactions)]]

TypeRequests == \A r \in requests : /\ r.api \in {"Commit", "TxnCommit", "Fetch"}
                                    /\ r.from \in Holders /\ r.part \in Parts

TypeReplies == \A y \in replies : y.to \in Holders /\ y.entry \in Entry

VARIABLE acknowledged  \* the highest offset that was acknowledged as committed
TypeAcknowledged == acknowledged \in [Parts -> 0..MaxOffset]

vars == <<epoch, grant, lease, log, unreplicated, member, txn, requests, replies,
          acknowledged, faultsLeft>>
decided == <<epoch, grant>>
stored  == <<log, unreplicated>>

EveryVariableHasItsType ==
  /\ TypeEpoch /\ TypeGrant /\ TypeLease /\ TypeLog /\ TypeUnreplicated
  /\ TypeMember /\ TypeTxn /\ TypeRequests /\ TypeReplies /\ TypeAcknowledged
  /\ TypeFaultsLeft

NoPositions == [t \in Parts |-> Unknown]
Nothing == [t \in Parts |-> 0]
NewMember == [position |-> NoPositions, dirty |-> {}, waiting |-> FALSE, begun |-> "none"]

Init ==
  /\ epoch = 0
  /\ grant = [h \in Holders |-> {}]
  /\ lease = [h \in Holders |-> [epoch |-> 0, resources |-> {}]]
  /\ log = NoOffsets
  /\ unreplicated = << >>
  /\ member = [h \in Holders |-> NewMember]
  /\ txn = [h \in Holders |-> [number |-> 0, state |-> "none",
                               offsets |-> Nothing, aborted |-> {}]]
  /\ requests = {}
  /\ replies = {}
  /\ acknowledged = Nothing
  /\ faultsLeft = AllFaultsLeft

-----------------------------------------------------------------------------
(***************************************************************************)
(* Parts of actions.                                                       *)
(***************************************************************************)
Max(n, m) == IF n >= m THEN n ELSE m

\* The coordinator's memory.
Newest == IF unreplicated = << >> THEN log
          ELSE unreplicated[Len(unreplicated)].store

Reply(r, error, e) ==
  [api |-> r.api, to |-> r.from, part |-> r.part, error |-> error, entry |-> e]
AnswersTo(r, error, e) == IF r.awaited THEN {Reply(r, error, e)} ELSE {}

\* The answers to a write that do not wait for it: none.
SentAtOnce(answers) == {}

\* A batch with these offsets, for which no member waits.
Batch(store) == [store |-> store, answers |-> {}, ends |-> {},
                 expired |-> {}, deleted |-> {}]

Highest(S) == CHOOSE n \in S : \A m \in S : n >= m

\* The promised offset of t once these answers are out: the highest acknowledged
\* one.
AcknowledgedWith(answers, t) ==
  Highest({acknowledged[t]} \cup
          {y.entry.offset : y \in {z \in answers :
             /\ z.api = "Commit" /\ z.error = "NONE" /\ z.part = t}})

\* A batch is written. The answers wait until it is replicated (F-RT-04).
Write(batch) ==
  /\ unreplicated' = Append(unreplicated,
       [batch EXCEPT !.answers = @ \ SentAtOnce(@)])
  /\ replies' = replies \cup SentAtOnce(batch.answers)
  /\ acknowledged' = [t \in Parts |-> AcknowledgedWith(SentAtOnce(batch.answers), t)]
  /\ UNCHANGED log

\* An answer without a record waits for the batches written before it (F-RT-07).
Respond(answers) ==
  /\ IF unreplicated = << >>
     THEN replies' = replies \cup answers /\ UNCHANGED stored
     ELSE /\ unreplicated' =
               [unreplicated EXCEPT ![Len(unreplicated)].answers = @ \cup answers]
          /\ UNCHANGED <<log, replies>>
  /\ UNCHANGED acknowledged

\* An error does not wait.
Reject(r, error) ==
  /\ replies' = replies \cup AnswersTo(r, error, Missing)
  /\ UNCHANGED <<stored, acknowledged>>

\* The coordinator checks the epoch that the request names (O-COMMIT-25, 32). It
\* does not check partitions: that members commit only what they own is an
\* assumption about members (NOT-05).
IsCurrent(r) == r.epoch = epoch

\* The log accepts offsets of an open transaction only (O-TXN-11).
IsInTransaction(r) ==
  /\ txn[r.from].state = "open"
  /\ txn[r.from].number = r.number

\* The partitions whose positions h keeps: those it still owns, if it missed no
\* decision. If it missed one it was fenced, and others may have continued
\* meanwhile (N-TR-06).
KeptPartitions(h) == IF lease[h].epoch + 1 = epoch THEN lease[h].resources \cap grant[h] ELSE {}

\* h learns of the last decision.
AfterLearning(h, m) ==
  [m EXCEPT !.position = [t \in Parts |-> IF t \in KeptPartitions(h) THEN @[t] ELSE Unknown],
            !.dirty    = @ \cap KeptPartitions(h)]
NewLease(h) == [lease EXCEPT ![h] = [epoch |-> epoch, resources |-> grant[h]]]

\* A member whose transaction failed: it has to read again what it has
\* processed.
Reset(m) == [m EXCEPT !.position = NoPositions, !.dirty = {}, !.begun = "none"]

StopWaiting(h) ==
  /\ unreplicated' = [i \in 1..Len(unreplicated) |->
       [unreplicated[i] EXCEPT !.answers = GiveUpReplies(@, h)]]
  /\ StopListening(h, {})
  /\ UNCHANGED log

Send(r) == requests' = requests \cup {r}

\* A member that can act: it waits for nothing, and has no failed transaction to
\* abort.
Ready(h) == ~member[h].waiting /\ member[h].begun # "failed"

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: members.                                                        *)
(***************************************************************************)

\* A member outside of a transaction learns of a new decision: it takes what it
\* is granted and gives up the rest.
MemberLearnsDecision(h) ==
  /\ lease[h].epoch < epoch
  /\ ~member[h].waiting
  /\ member[h].begun = "none"
  /\ member' = [member EXCEPT ![h] = AfterLearning(h, @)]
  /\ lease' = NewLease(h)
  /\ UNCHANGED <<decided, stored, txn, net, acknowledged, faultsLeft>>

\* An owner without a position fetches the committed offset (K-POS-01).
MemberFetches(h, t) ==
  /\ Ready(h)
  /\ t \in lease[h].resources
  /\ member[h].position[t] = Unknown
  /\ member' = [member EXCEPT ![h].waiting = TRUE]
  /\ Send([api |-> "Fetch", from |-> h, awaited |-> TRUE, epoch |-> lease[h].epoch,
           part |-> t])
  /\ UNCHANGED <<decided, lease, stored, txn, replies, acknowledged, faultsLeft>>

\* An owner processes the next record.
MemberProcesses(h, t) ==
  /\ Ready(h)
  /\ t \in lease[h].resources
  /\ member[h].position[t] < MaxOffset
  /\ member' = [member EXCEPT ![h].position[t] = @ + 1, ![h].dirty = @ \cup {t}]
  /\ UNCHANGED <<decided, lease, stored, txn, net, acknowledged, faultsLeft>>

\* An owner commits what it has processed.
MemberCommits(h, t) ==
  /\ h \in PlainCommitters
  /\ Ready(h)
  /\ t \in member[h].dirty
  /\ member' = [member EXCEPT ![h].waiting = TRUE]
  /\ Send([api |-> "Commit", from |-> h, awaited |-> TRUE, epoch |-> lease[h].epoch,
           part |-> t, offset |-> member[h].position[t]])
  /\ UNCHANGED <<decided, lease, stored, txn, replies, acknowledged, faultsLeft>>

\* An owner commits what it has processed in its transaction, or begins one if
\* it may.
MemberCommitsInTransaction(h, t) ==
  LET begins == member[h].begun = "none"
      n == IF begins THEN txn[h].number + 1 ELSE txn[h].number
  IN /\ h \in TransactionalCommitters
     /\ Ready(h)
     /\ t \in member[h].dirty
     /\ begins => txn[h].state = "none" /\ n <= Transactions
     /\ member' = [member EXCEPT ![h].waiting = TRUE, ![h].begun = "open"]
     /\ txn' = IF begins THEN [txn EXCEPT ![h].number = n, ![h].state = "open"]
               ELSE txn
     /\ Send([api |-> "TxnCommit", from |-> h, awaited |-> TRUE,
              epoch |-> lease[h].epoch, part |-> t,
              offset |-> member[h].position[t], number |-> n])
     /\ UNCHANGED <<decided, lease, stored, replies, acknowledged, faultsLeft>>

\* A producer whose writes are all answered commits its transaction, which is
\* still open. From now on its offsets are promised.
MemberCommitsTransaction(h) ==
  /\ member[h].begun = "open"
  /\ ~member[h].waiting
  /\ txn[h].state = "open"
  /\ member' = [member EXCEPT ![h].begun = "none"]
  /\ txn' = [txn EXCEPT ![h].state = "committing", ![h].offsets = Nothing]
  /\ acknowledged' = [t \in Parts |-> Max(acknowledged[t], txn[h].offsets[t])]
  /\ UNCHANGED <<decided, lease, stored, net, faultsLeft>>

\* The transaction of h will be undone.
Aborting(h) ==
  [txn EXCEPT ![h].state = "aborting", ![h].offsets = Nothing,
              ![h].aborted = @ \cup {txn[h].number}]

\* A producer aborts its transaction, unless the coordinator has, and returns to
\* what is committed.
MemberAbortsTransaction(h) ==
  /\ member[h].begun # "none"
  /\ ~member[h].waiting
  /\ member' = [member EXCEPT ![h] = Reset(@)]
  /\ txn' = IF txn[h].state = "open" THEN Aborting(h) ELSE txn
  /\ UNCHANGED <<decided, lease, stored, net, acknowledged, faultsLeft>>

\* Member m after the answer y.
AfterReply(m, y) ==
  CASE y.error = "NONE" /\ y.api = "Fetch" ->
         [m EXCEPT !.waiting = FALSE, !.position[y.part] = y.entry.offset]
    [] y.error = "NONE" -> [m EXCEPT !.waiting = FALSE, !.dirty = @ \ {y.part}]
    [] m.begun = "open" -> [m EXCEPT !.waiting = FALSE, !.begun = "failed"]
    [] OTHER -> [m EXCEPT !.waiting = FALSE]

\* A member receives an answer and continues: at the position returned, with
\* what is still to be committed, or by learning what it owns (O-COMMIT-25,
\* N-CMT-02).
MemberReceivesReply ==
  /\ \E y \in replies :
       LET h == y.to
           m == AfterReply(member[h], y)
           learns == y.error = "STALE_MEMBER_EPOCH" /\ m.begun = "none"
       IN /\ replies' = replies \ {y}
          /\ member' = [member EXCEPT ![h] = IF learns THEN AfterLearning(h, m) ELSE m]
          /\ lease' = IF learns THEN NewLease(h) ELSE lease
  /\ UNCHANGED <<decided, stored, txn, requests, acknowledged, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinators and log.                                           *)
(***************************************************************************)

\* The coordinator writes or refuses a commit.
CoordinatorHandlesCommit ==
  /\ \E r \in {q \in requests : q.api = "Commit"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ IF IsCurrent(r)
          THEN LET store == [Newest EXCEPT ![r.part] = WithCommit(@, r.offset)]
               IN Write([Batch(store) EXCEPT
                    !.answers = AnswersTo(r, "NONE", Plain(r.offset))])
          ELSE Reject(r, "STALE_MEMBER_EPOCH")
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* The coordinator writes a transactional commit as pending, or refuses it
\* (O-TXN-04, 05, 07, 11).
CoordinatorHandlesTxnCommit ==
  /\ \E r \in {q \in requests : q.api = "TxnCommit"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ CASE ~IsCurrent(r) -> Reject(r, "ILLEGAL_GENERATION")
            [] ~IsInTransaction(r) -> Reject(r, "INVALID_PRODUCER_EPOCH")
            [] OTHER ->
                 LET e == InTransaction(r.from, r.number, r.offset)
                     store == [Newest EXCEPT ![r.part] = WithPending(@, e)]
                 IN Write([Batch(store) EXCEPT !.answers = AnswersTo(r, "NONE", e)])
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* The coordinator answers a fetch with the committed offset. For stable offsets
\* it answers from memory, when that is replicated, and only if nothing is
\* pending there; otherwise it answers from the replicated state (O-FETCH-05,
\* 07, 08). A fetch that would have to be sent again is not a step: that is the
\* same as a later fetch.
CoordinatorHandlesFetch ==
  /\ \E r \in {q \in requests : q.api = "Fetch"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ CASE ~IsCurrent(r) -> Reject(r, "STALE_MEMBER_EPOCH")
            [] RequireStable ->
                 /\ ~Unstable(Newest[r.part])
                 /\ Respond(AnswersTo(r, "NONE", Visible(Newest[r.part])))
            [] OTHER ->
                 /\ replies' = replies \cup AnswersTo(r, "NONE", Visible(log[r.part]))
                 /\ UNCHANGED <<stored, acknowledged>>
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* The marker of h is written, and not yet answered.
MarkerIsInFlight(h) == \E i \in 1..Len(unreplicated) : h \in unreplicated[i].ends

\* The transaction coordinator writes the marker of a decided transaction
\* (O-TXN-08), again until it is answered.
MarkerIsWritten(h) ==
  /\ txn[h].state \in {"committing", "aborting"}
  /\ ~MarkerIsInFlight(h)
  /\ LET store == [t \in Parts |-> IF txn[h].state = "committing"
                                   THEN AfterCommitMarker(Newest[t], h)
                                   ELSE AfterAbortMarker(Newest[t], h)]
     IN Write([Batch(store) EXCEPT !.ends = {h}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

\* The highest offset that h knows to be written in its transaction once these
\* answers are out.
WrittenWith(answers, h, t) ==
  Highest({txn[h].offsets[t]} \cup
          {y.entry.offset : y \in {z \in answers :
             /\ z.api = "TxnCommit" /\ z.error = "NONE" /\ z.part = t /\ z.to = h
             /\ txn[h].state = "open" /\ z.entry.number = txn[h].number}})

\* The log replicates its oldest open batch: answers are released, the
\* transaction whose marker it holds is over, and deleted or expired offsets are
\* no longer promised.
AppendSucceeds ==
  /\ unreplicated # << >>
  /\ LET e == Head(unreplicated)
     IN /\ log' = e.store
        /\ replies' = replies \cup e.answers
        /\ acknowledged' = [t \in Parts |-> IF t \in e.expired \cup e.deleted THEN 0
                                            ELSE AcknowledgedWith(e.answers, t)]
        /\ txn' = [h \in Holders |->
             [txn[h] EXCEPT
                !.state = IF h \in e.ends THEN "none" ELSE @,
                !.offsets = [t \in Parts |-> IF t \in e.deleted THEN 0
                                             ELSE WrittenWith(e.answers, h, t)]]]
  /\ unreplicated' = Tail(unreplicated)
  /\ UNCHANGED <<decided, lease, member, requests, faultsLeft>>

\* The producer no longer knows the transaction.
IsAbandoned(h) == txn[h].state = "open" /\ member[h].begun = "none"

\* The transaction coordinator eventually aborts a transaction that nothing else
\* would end.
TransactionIsAbandoned(h) ==
  /\ IsAbandoned(h)
  /\ txn' = Aborting(h)
  /\ UNCHANGED <<decided, lease, stored, member, net, acknowledged, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment.                                                            *)
(***************************************************************************)

\* The group makes another decision, within the bound; no member knows of it
\* yet.
GroupDecides(g) ==
  /\ "GroupDecides" \in Allowed
  /\ epoch < Epochs
  /\ g # grant
  /\ epoch' = epoch + 1
  /\ grant' = g
  /\ UNCHANGED <<lease, stored, member, txn, net, acknowledged, faultsLeft>>

\* A waiting member stops waiting; its request may still be handled.
MemberGivesUp(h) ==
  /\ Fault("MemberGivesUp")
  /\ member[h].waiting
  /\ member' = [member EXCEPT ![h].waiting = FALSE,
                              ![h].begun = IF @ = "open" THEN "failed" ELSE @]
  /\ StopWaiting(h)
  /\ UNCHANGED <<decided, lease, txn, acknowledged>>

\* A member restarts in its place and has lost everything.
MemberRestarts(h) ==
  /\ Fault("MemberRestarts")
  /\ member[h] # NewMember
  /\ member' = [member EXCEPT ![h] = NewMember]
  /\ StopWaiting(h)
  /\ UNCHANGED <<decided, lease, txn, acknowledged>>

\* The transaction coordinator aborts a transaction that was open too long,
\* although its producer still uses it.
TransactionTimesOut(h) ==
  /\ "TransactionTimesOut" \in Allowed
  /\ txn[h].state = "open"
  /\ member[h].begun # "none"
  /\ txn' = Aborting(h)
  /\ UNCHANGED <<decided, lease, stored, member, net, acknowledged, faultsLeft>>

\* The offsets that a new coordinator loads if the first k batches survive
\* (F-LOAD-01).
Loaded(k) == IF k = 0 THEN log ELSE unreplicated[k].store

\* Another broker becomes the coordinator; the first k batches survive. Waiting
\* members get NOT_COORDINATOR, whether their batch survives or not.
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ \E k \in 0..Len(unreplicated) :
       LET deleted == UNION {unreplicated[i].deleted : i \in 1..k}
           gone == deleted \cup UNION {unreplicated[i].expired : i \in 1..k}
       IN /\ log' = Loaded(k)
          /\ acknowledged' = [t \in Parts |-> IF t \in gone THEN 0 ELSE acknowledged[t]]
          /\ txn' = [h \in Holders |-> [txn[h] EXCEPT !.offsets =
               [t \in Parts |-> IF t \in deleted THEN 0 ELSE @[t]]]]
  /\ unreplicated' = << >>
  /\ replies' = replies \cup
       UNION {{[y EXCEPT !.error = "NOT_COORDINATOR", !.entry = Missing] :
                 y \in unreplicated[i].answers} : i \in 1..Len(unreplicated)}
  /\ UNCHANGED <<decided, lease, member, requests>>

\* A member that is granted nothing subscribes to nothing.
NoMemberSubscribes == \A h \in Holders : grant[h] = {}

\* A tombstone removes everything of t, pending offsets included (O-TXN-10).
WithTombstone(t) == Batch([Newest EXCEPT ![t] = << >>])

\* An operator deletes an offset to which no member subscribes. That removes it
\* from open transactions too (O-DEL-05, 06, 09).
OffsetIsDeleted(t) ==
  /\ "OffsetIsDeleted" \in Allowed
  /\ NoMemberSubscribes
  /\ Newest[t] # << >>
  /\ Write([WithTombstone(t) EXCEPT !.deleted = {t}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

\* A committed offset expires if no member subscribes to it and no transaction
\* may still commit it (O-EXP-02..05, 11, 12).
OffsetExpires(t) ==
  /\ "OffsetExpires" \in Allowed
  /\ NoMemberSubscribes
  /\ Visible(Newest[t]) # Missing
  /\ MayExpire(Newest[t])
  /\ Write([WithTombstone(t) EXCEPT !.expired = {t}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorHandlesCommit
  \/ CoordinatorHandlesTxnCommit
  \/ CoordinatorHandlesFetch
  \/ MemberReceivesReply
  \/ \E h \in Holders : MemberLearnsDecision(h)
  \/ \E h \in Holders : MemberCommitsTransaction(h)
  \/ \E h \in Holders : MemberAbortsTransaction(h)
  \/ \E h \in Holders : MarkerIsWritten(h)
  \/ \E h \in Holders : TransactionIsAbandoned(h)
  \/ \E h \in Holders, t \in Parts : MemberFetches(h, t)
  \/ \E h \in Holders, t \in Parts : MemberProcesses(h, t)
  \/ \E h \in Holders, t \in Parts : MemberCommits(h, t)
  \/ \E h \in Holders, t \in Parts : MemberCommitsInTransaction(h, t)

Environment ==
  \/ CoordinatorFailsOver
  \/ \E g \in Decisions : GroupDecides(g)
  \/ \E h \in Holders : MemberGivesUp(h)
  \/ \E h \in Holders : MemberRestarts(h)
  \/ \E h \in Holders : TransactionTimesOut(h)
  \/ \E t \in Parts : OffsetIsDeleted(t)
  \/ \E t \in Parts : OffsetExpires(t)

Next == System \/ Environment

Spec == Init /\ [][Next]_vars

(***************************************************************************)
(* As long as the system can do something, it does something. The          *)
(* environment is not fair.                                                *)
(***************************************************************************)
FairSpec == Spec /\ WF_vars(System)
=============================================================================
