------------------------------- MODULE Offsets ------------------------------
(***************************************************************************)
(* How the positions of a group outlive its members: owners read where the *)
(* one before them stopped, process, and commit, plainly or in a           *)
(* transaction. Who owns what is decided as Ownership has it, and what is  *)
(* written is kept as Durable has it; how either is done does not matter   *)
(* here. docs/closed-system.md, part five, is its contract.                *)
(*                                                                         *)
(* System is what members, coordinator, log and the coordinator of         *)
(* transactions do, Environment what happens to them. Fairness is on       *)
(* System alone.                                                           *)
(***************************************************************************)
EXTENDS OffsetStore, Network

CONSTANTS
  Plainly,        \* members that commit plainly
  Transactional,  \* members that commit in transactions; a member may do both
  Decisions,      \* who may be granted what
  Epochs,         \* how many decisions there may be
  RequireStable,  \* do members ask for stable offsets?
  Faults,         \* how many faults of the environment a run may have
  Allowed         \* names of the environment actions that may happen

ASSUME Plainly \cup Transactional \subseteq Holders
ASSUME Decisions \subseteq [Holders -> SUBSET Parts]
ASSUME Epochs \in Nat /\ Faults \in Nat /\ RequireStable \in BOOLEAN

Unknown == MaxOffset + 1  \* the position of who has not asked yet

-----------------------------------------------------------------------------
VARIABLE epoch         \* number of the last decision
TypeEpoch == epoch \in 0..Epochs

VARIABLE grant         \* that decision: who shall own what
TypeGrant == grant \in [Holders -> SUBSET Parts]

VARIABLE lease         \* the decision that a member last heard of, and what it got
TypeLease == lease \in [Holders -> [epoch : 0..Epochs, things : SUBSET Parts]]

VARIABLE log           \* the offsets as far as they are replicated
TypeLog == IsStore(log)

\* Written and not yet replicated, oldest first: the offsets then, the answers
\* that wait, whose marker it was, whose offset expired or was deleted.
VARIABLE unreplicated
TypeUnreplicated ==
  \A i \in 1..Len(unreplicated) :
    /\ IsStore(unreplicated[i].store)
    /\ unreplicated[i].ends \subseteq Holders
    /\ unreplicated[i].expired \subseteq Parts
    /\ unreplicated[i].deleted \subseteq Parts

VARIABLE member        \* where each member is, and what it has not committed
TypeMember == member \in [Holders ->
  [position : [Parts -> 0..Unknown], dirty : SUBSET Parts, waiting : BOOLEAN,
   begun : {"none", "open", "failed"}]]

\* What the coordinator of transactions has of each producer: the last
\* transaction, what came of it, the offsets that it knows to be written in it,
\* and which transactions were aborted.
VARIABLE txn
TypeTxn == txn \in [Holders ->
  [number : 0..Transactions, state : {"none", "open", "committing", "aborting"},
   offsets : [Parts -> 0..MaxOffset], aborted : SUBSET (1..Transactions)]]

VARIABLE requests      \* requests on their way to the coordinator
TypeRequests == \A r \in requests : /\ r.api \in {"Commit", "TxnCommit", "Fetch"}
                                    /\ r.from \in Holders /\ r.part \in Parts

VARIABLE replies       \* answers on their way to members
TypeReplies == \A y \in replies : y.to \in Holders /\ y.entry \in Entry

VARIABLE promised      \* the highest offset that a member was told is committed
TypePromised == promised \in [Parts -> 0..MaxOffset]

VARIABLE faultsLeft    \* faults that may still happen
TypeFaultsLeft == faultsLeft \in 0..Faults

vars == <<epoch, grant, lease, log, unreplicated, member, txn, requests, replies,
          promised, faultsLeft>>
decided == <<epoch, grant>>
stored  == <<log, unreplicated>>
net     == <<requests, replies>>

EveryVariableHasItsType ==
  /\ TypeEpoch /\ TypeGrant /\ TypeLease /\ TypeLog /\ TypeUnreplicated
  /\ TypeMember /\ TypeTxn /\ TypeRequests /\ TypeReplies /\ TypePromised
  /\ TypeFaultsLeft

Nowhere == [t \in Parts |-> Unknown]
Nothing == [t \in Parts |-> 0]
Fresh == [position |-> Nowhere, dirty |-> {}, waiting |-> FALSE, begun |-> "none"]

Init ==
  /\ epoch = 0
  /\ grant = [h \in Holders |-> {}]
  /\ lease = [h \in Holders |-> [epoch |-> 0, things |-> {}]]
  /\ log = NoOffsets
  /\ unreplicated = << >>
  /\ member = [h \in Holders |-> Fresh]
  /\ txn = [h \in Holders |-> [number |-> 0, state |-> "none",
                               offsets |-> Nothing, aborted |-> {}]]
  /\ requests = {}
  /\ replies = {}
  /\ promised = Nothing
  /\ faultsLeft = Faults

-----------------------------------------------------------------------------
(***************************************************************************)
(* Parts of actions.                                                       *)
(***************************************************************************)
Max(n, m) == IF n >= m THEN n ELSE m

\* What the coordinator has in memory.
Newest == IF unreplicated = << >> THEN log
          ELSE unreplicated[Len(unreplicated)].store

Reply(r, error, e) ==
  [api |-> r.api, to |-> r.from, part |-> r.part, error |-> error, entry |-> e]
AnswersTo(r, error, e) == IF r.heard THEN {Reply(r, error, e)} ELSE {}

\* Of the answers to what was written: those that do not wait. None.
AtOnce(answers) == {}

\* A batch after which the offsets are these, and which nobody waits for.
Batch(store) == [store |-> store, answers |-> {}, ends |-> {},
                 expired |-> {}, deleted |-> {}]

Highest(S) == CHOOSE n \in S : \A m \in S : n >= m

\* What is promised of t once these answers are out: the highest that was told.
PromisedWith(answers, t) ==
  Highest({promised[t]} \cup
          {y.entry.offset : y \in {z \in answers :
             /\ z.api = "Commit" /\ z.error = "NONE" /\ z.part = t}})

\* A batch is written. The answers wait until it is replicated (F-RT-04).
Writes(batch) ==
  /\ unreplicated' = Append(unreplicated,
       [batch EXCEPT !.answers = @ \ AtOnce(@)])
  /\ replies' = replies \cup AtOnce(batch.answers)
  /\ promised' = [t \in Parts |-> PromisedWith(AtOnce(batch.answers), t)]
  /\ UNCHANGED log

\* An answer without a record waits for what was written before it (F-RT-07).
Answers(answers) ==
  /\ IF unreplicated = << >>
     THEN replies' = replies \cup answers /\ UNCHANGED stored
     ELSE /\ unreplicated' =
               [unreplicated EXCEPT ![Len(unreplicated)].answers = @ \cup answers]
          /\ UNCHANGED <<log, replies>>
  /\ UNCHANGED promised

\* An error waits for nothing.
Refuses(r, error) ==
  /\ replies' = replies \cup AnswersTo(r, error, Missing)
  /\ UNCHANGED <<stored, promised>>

\* The coordinator knows a member by the epoch that it names (O-COMMIT-25, 32).
\* It looks at no partition: that members commit only what they own is up to
\* them (NOT-05).
IsCurrent(r) == r.epoch = epoch

\* The log takes offsets of an open transaction alone (O-TXN-11).
IsInTransaction(r) ==
  /\ txn[r.from].state = "open"
  /\ txn[r.from].number = r.number

\* Who may keep its positions: who missed no decision. Whoever did was fenced, and
\* others may have gone on meanwhile (N-TR-06).
Keeps(h) == IF lease[h].epoch + 1 = epoch THEN lease[h].things \cap grant[h] ELSE {}

\* h hears of the last decision.
Learned(h, m) ==
  [m EXCEPT !.position = [t \in Parts |-> IF t \in Keeps(h) THEN @[t] ELSE Unknown],
            !.dirty    = @ \cap Keeps(h)]
Newly(h) == [lease EXCEPT ![h] = [epoch |-> epoch, things |-> grant[h]]]

\* What is left of a member whose transaction did not come off: it has to read
\* again what it has processed.
Reset(m) == [m EXCEPT !.position = Nowhere, !.dirty = {}, !.begun = "none"]

StopsWaiting(h) ==
  /\ unreplicated' = [i \in 1..Len(unreplicated) |->
       [unreplicated[i] EXCEPT !.answers = GiveUpReplies(@, h)]]
  /\ requests' = GiveUpRequests(requests, h)
  /\ replies' = GiveUpReplies(replies, h)
  /\ UNCHANGED log

Sends(r) == requests' = requests \cup {r}

Fault(name) ==
  /\ name \in Allowed
  /\ faultsLeft > 0
  /\ faultsLeft' = faultsLeft - 1

\* A member that can do something: it waits for nothing, has to clear up nothing.
Ready(h) == ~member[h].waiting /\ member[h].begun # "failed"

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: members.                                                        *)
(***************************************************************************)

\* WHO a member. WHEN there is a decision that it has not heard of, and it is in
\* no transaction. DOES take what it is granted, give up what it is not.
MemberLearns(h) ==
  /\ lease[h].epoch < epoch
  /\ ~member[h].waiting
  /\ member[h].begun = "none"
  /\ member' = [member EXCEPT ![h] = Learned(h, @)]
  /\ lease' = Newly(h)
  /\ UNCHANGED <<decided, stored, txn, net, promised, faultsLeft>>

\* WHO an owner. WHEN it does not know where to begin. DOES ask (K-POS-01).
MemberFetches(h, t) ==
  /\ Ready(h)
  /\ t \in lease[h].things
  /\ member[h].position[t] = Unknown
  /\ member' = [member EXCEPT ![h].waiting = TRUE]
  /\ Sends([api |-> "Fetch", from |-> h, heard |-> TRUE, epoch |-> lease[h].epoch,
            part |-> t])
  /\ UNCHANGED <<decided, lease, stored, txn, replies, promised, faultsLeft>>

\* WHO an owner. WHEN there is a record. DOES process it.
MemberProcesses(h, t) ==
  /\ Ready(h)
  /\ t \in lease[h].things
  /\ member[h].position[t] < MaxOffset
  /\ member' = [member EXCEPT ![h].position[t] = @ + 1, ![h].dirty = @ \cup {t}]
  /\ UNCHANGED <<decided, lease, stored, txn, net, promised, faultsLeft>>

\* WHO an owner. WHEN it has processed more than it committed. DOES commit it.
MemberCommits(h, t) ==
  /\ h \in Plainly
  /\ Ready(h)
  /\ t \in member[h].dirty
  /\ member' = [member EXCEPT ![h].waiting = TRUE]
  /\ Sends([api |-> "Commit", from |-> h, heard |-> TRUE, epoch |-> lease[h].epoch,
            part |-> t, offset |-> member[h].position[t]])
  /\ UNCHANGED <<decided, lease, stored, txn, replies, promised, faultsLeft>>

\* WHO an owner. WHEN the same, and it is in a transaction, or may begin one.
\* DOES commit what it has processed in that transaction.
MemberCommitsInTransaction(h, t) ==
  LET begins == member[h].begun = "none"
      n == IF begins THEN txn[h].number + 1 ELSE txn[h].number
  IN /\ h \in Transactional
     /\ Ready(h)
     /\ t \in member[h].dirty
     /\ begins => txn[h].state = "none" /\ n <= Transactions
     /\ member' = [member EXCEPT ![h].waiting = TRUE, ![h].begun = "open"]
     /\ txn' = IF begins THEN [txn EXCEPT ![h].number = n, ![h].state = "open"]
               ELSE txn
     /\ Sends([api |-> "TxnCommit", from |-> h, heard |-> TRUE,
               epoch |-> lease[h].epoch, part |-> t,
               offset |-> member[h].position[t], number |-> n])
     /\ UNCHANGED <<decided, lease, stored, replies, promised, faultsLeft>>

\* WHO a producer. WHEN all that it wrote is answered, and nobody has ended its
\* transaction. DOES commit it; from now on its offsets are promised.
MemberCommitsTransaction(h) ==
  /\ member[h].begun = "open"
  /\ ~member[h].waiting
  /\ txn[h].state = "open"
  /\ member' = [member EXCEPT ![h].begun = "none"]
  /\ txn' = [txn EXCEPT ![h].state = "committing", ![h].offsets = Nothing]
  /\ promised' = [t \in Parts |-> Max(promised[t], txn[h].offsets[t])]
  /\ UNCHANGED <<decided, lease, stored, net, faultsLeft>>

\* The transaction of h is to be undone.
Aborting(h) ==
  [txn EXCEPT ![h].state = "aborting", ![h].offsets = Nothing,
              ![h].aborted = @ \cup {txn[h].number}]

\* WHO a producer. WHEN it is in a transaction. DOES abort it, if nobody else has,
\* and goes back to what is committed.
MemberAbortsTransaction(h) ==
  /\ member[h].begun # "none"
  /\ ~member[h].waiting
  /\ member' = [member EXCEPT ![h] = Reset(@)]
  /\ txn' = IF txn[h].state = "open" THEN Aborting(h) ELSE txn
  /\ UNCHANGED <<decided, lease, stored, net, promised, faultsLeft>>

\* What an answer makes of member m.
AfterReply(m, y) ==
  CASE y.error = "NONE" /\ y.api = "Fetch" ->
         [m EXCEPT !.waiting = FALSE, !.position[y.part] = y.entry.offset]
    [] y.error = "NONE" -> [m EXCEPT !.waiting = FALSE, !.dirty = @ \ {y.part}]
    [] m.begun = "open" -> [m EXCEPT !.waiting = FALSE, !.begun = "failed"]
    [] OTHER -> [m EXCEPT !.waiting = FALSE]

\* WHO a member. WHEN it is answered. DOES go on: from where it is told, with what
\* is still to be committed, or by asking what it owns (O-COMMIT-25, N-CMT-02).
MemberGetsReply ==
  /\ \E y \in replies :
       LET h == y.to
           m == AfterReply(member[h], y)
           learns == y.error = "STALE_MEMBER_EPOCH" /\ m.begun = "none"
       IN /\ replies' = replies \ {y}
          /\ member' = [member EXCEPT ![h] = IF learns THEN Learned(h, m) ELSE m]
          /\ lease' = IF learns THEN Newly(h) ELSE lease
  /\ UNCHANGED <<decided, stored, txn, requests, promised, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* System: coordinators and log.                                           *)
(***************************************************************************)

\* WHO the coordinator. WHEN a commit arrives. DOES write it, or refuse it.
CoordinatorGetsCommit ==
  /\ \E r \in {q \in requests : q.api = "Commit"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ IF IsCurrent(r)
          THEN LET store == [Newest EXCEPT ![r.part] = WithCommit(@, r.offset)]
               IN Writes([Batch(store) EXCEPT
                    !.answers = AnswersTo(r, "NONE", Plain(r.offset))])
          ELSE Refuses(r, "STALE_MEMBER_EPOCH")
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* WHO the coordinator. WHEN a commit in a transaction arrives. DOES write it down
\* as pending, or refuse it (O-TXN-04, 05, 07, 11).
CoordinatorGetsTxnCommit ==
  /\ \E r \in {q \in requests : q.api = "TxnCommit"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ CASE ~IsCurrent(r) -> Refuses(r, "ILLEGAL_GENERATION")
            [] ~IsInTransaction(r) -> Refuses(r, "INVALID_PRODUCER_EPOCH")
            [] OTHER ->
                 LET e == InTransaction(r.from, r.number, r.offset)
                     store == [Newest EXCEPT ![r.part] = WithPending(@, e)]
                 IN Writes([Batch(store) EXCEPT !.answers = AnswersTo(r, "NONE", e)])
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* WHO the coordinator. WHEN a fetch arrives, and what it asks for is not pending.
\* One that is told to come again is no step: that is the same as coming later.
\* DOES tell what is committed: as of memory, once that is replicated, to who asks
\* for stable offsets; else as of what is replicated (O-FETCH-05, 07, 08).
CoordinatorGetsFetch ==
  /\ \E r \in {q \in requests : q.api = "Fetch"} :
       /\ Deliverable(requests, r)
       /\ requests' = requests \ {r}
       /\ CASE ~IsCurrent(r) -> Refuses(r, "STALE_MEMBER_EPOCH")
            [] RequireStable ->
                 /\ ~Unstable(Newest[r.part])
                 /\ Answers(AnswersTo(r, "NONE", Visible(Newest[r.part])))
            [] OTHER ->
                 /\ replies' = replies \cup AnswersTo(r, "NONE", Visible(log[r.part]))
                 /\ UNCHANGED <<stored, promised>>
  /\ UNCHANGED <<decided, lease, member, txn, faultsLeft>>

\* The marker of h is written, and not yet answered.
MarkerIsOut(h) == \E i \in 1..Len(unreplicated) : h \in unreplicated[i].ends

\* WHO the coordinator of transactions. WHEN one is decided, and its marker is not
\* known to be written. DOES have it written (O-TXN-08); asks until it is told so.
MarkerIsWritten(h) ==
  /\ txn[h].state \in {"committing", "aborting"}
  /\ ~MarkerIsOut(h)
  /\ LET store == [t \in Parts |-> IF txn[h].state = "committing"
                                   THEN AfterCommitMarker(Newest[t], h)
                                   ELSE AfterAbortMarker(Newest[t], h)]
     IN Writes([Batch(store) EXCEPT !.ends = {h}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

\* What h knows to be written in its transaction once these answers are out.
WrittenWith(answers, h, t) ==
  Highest({txn[h].offsets[t]} \cup
          {y.entry.offset : y \in {z \in answers :
             /\ z.api = "TxnCommit" /\ z.error = "NONE" /\ z.part = t /\ z.to = h
             /\ txn[h].state = "open" /\ z.entry.number = txn[h].number}})

\* WHO the log. WHEN something is open. DOES replicate the oldest batch: answers are
\* released, a transaction whose marker it was is over, what it forgot is forgotten.
AppendSucceeds ==
  /\ unreplicated # << >>
  /\ LET e == Head(unreplicated)
     IN /\ log' = e.store
        /\ replies' = replies \cup e.answers
        /\ promised' = [t \in Parts |-> IF t \in e.expired \cup e.deleted THEN 0
                                        ELSE PromisedWith(e.answers, t)]
        /\ txn' = [h \in Holders |->
             [txn[h] EXCEPT
                !.state = IF h \in e.ends THEN "none" ELSE @,
                !.offsets = [t \in Parts |-> IF t \in e.deleted THEN 0
                                             ELSE WrittenWith(e.answers, h, t)]]]
  /\ unreplicated' = Tail(unreplicated)
  /\ UNCHANGED <<decided, lease, member, requests, faultsLeft>>

\* The producer knows nothing of the transaction any more.
IsAbandoned(h) == txn[h].state = "open" /\ member[h].begun = "none"

\* WHO the coordinator of transactions. WHEN nobody else will ever end one. DOES
\* abort it, some time.
TransactionIsAbandoned(h) ==
  /\ IsAbandoned(h)
  /\ txn' = Aborting(h)
  /\ UNCHANGED <<decided, lease, stored, member, net, promised, faultsLeft>>

-----------------------------------------------------------------------------
(***************************************************************************)
(* Environment.                                                            *)
(***************************************************************************)

\* WHO the group. WHEN it may decide once more. DOES grant anew; nobody has heard
\* of it yet.
GroupDecides(g) ==
  /\ "GroupDecides" \in Allowed
  /\ epoch < Epochs
  /\ g # grant
  /\ epoch' = epoch + 1
  /\ grant' = g
  /\ UNCHANGED <<lease, stored, member, txn, net, promised, faultsLeft>>

\* WHO a member. WHEN it waits. DOES stop waiting; what it asked may still be done.
MemberGivesUp(h) ==
  /\ Fault("MemberGivesUp")
  /\ member[h].waiting
  /\ member' = [member EXCEPT ![h].waiting = FALSE,
                              ![h].begun = IF @ = "open" THEN "failed" ELSE @]
  /\ StopsWaiting(h)
  /\ UNCHANGED <<decided, lease, txn, promised>>

\* WHO a member. DOES die and come back in its place, and knows nothing any more.
MemberRestarts(h) ==
  /\ Fault("MemberRestarts")
  /\ member[h] # Fresh
  /\ member' = [member EXCEPT ![h] = Fresh]
  /\ StopsWaiting(h)
  /\ UNCHANGED <<decided, lease, txn, promised>>

\* WHO the coordinator of transactions. WHEN one is open for long. DOES abort it,
\* though its producer is at it.
TransactionTimesOut(h) ==
  /\ "TransactionTimesOut" \in Allowed
  /\ txn[h].state = "open"
  /\ member[h].begun # "none"
  /\ txn' = Aborting(h)
  /\ UNCHANGED <<decided, lease, stored, member, net, promised, faultsLeft>>

\* What another coordinator loads where the first k batches survive (F-LOAD-01).
Loaded(k) == IF k = 0 THEN log ELSE unreplicated[k].store

\* WHO the cluster. DOES make another broker the coordinator: the first k batches
\* survive. Who waited is told to look elsewhere, whether its batch survives or not.
CoordinatorFailsOver ==
  /\ Fault("CoordinatorFailsOver")
  /\ \E k \in 0..Len(unreplicated) :
       LET deleted == UNION {unreplicated[i].deleted : i \in 1..k}
           gone == deleted \cup UNION {unreplicated[i].expired : i \in 1..k}
       IN /\ log' = Loaded(k)
          /\ promised' = [t \in Parts |-> IF t \in gone THEN 0 ELSE promised[t]]
          /\ txn' = [h \in Holders |-> [txn[h] EXCEPT !.offsets =
               [t \in Parts |-> IF t \in deleted THEN 0 ELSE @[t]]]]
  /\ unreplicated' = << >>
  /\ replies' = replies \cup
       UNION {{[y EXCEPT !.error = "NOT_COORDINATOR", !.entry = Missing] :
                 y \in unreplicated[i].answers} : i \in 1..Len(unreplicated)}
  /\ UNCHANGED <<decided, lease, member, requests>>

\* Who is granted nothing subscribes to nothing.
NobodySubscribes == \A h \in Holders : grant[h] = {}

\* A tombstone takes away all that there is of t, what is pending too (O-TXN-10).
WithTombstone(t) == Batch([Newest EXCEPT ![t] = << >>])

\* WHO an operator. WHEN nobody subscribes and there is something. DOES delete
\* the offset, and takes it out of open transactions (O-DEL-05, 06, 09).
OffsetIsDeleted(t) ==
  /\ "OffsetIsDeleted" \in Allowed
  /\ NobodySubscribes
  /\ Newest[t] # << >>
  /\ Writes([WithTombstone(t) EXCEPT !.deleted = {t}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

\* WHO the clock. WHEN nobody subscribes, and no transaction may still commit it.
\* DOES let what is committed expire (O-EXP-02..05, 11, 12).
OffsetExpires(t) ==
  /\ "OffsetExpires" \in Allowed
  /\ NobodySubscribes
  /\ Visible(Newest[t]) # Missing
  /\ MayExpire(Newest[t])
  /\ Writes([WithTombstone(t) EXCEPT !.expired = {t}])
  /\ UNCHANGED <<decided, lease, member, txn, requests, faultsLeft>>

-----------------------------------------------------------------------------
System ==
  \/ AppendSucceeds
  \/ CoordinatorGetsCommit
  \/ CoordinatorGetsTxnCommit
  \/ CoordinatorGetsFetch
  \/ MemberGetsReply
  \/ \E h \in Holders : MemberLearns(h)
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
(* As long as the system can do something, it does something. Nothing is   *)
(* fair about the environment.                                             *)
(***************************************************************************)
FairSpec == Spec /\ WF_vars(System)
=============================================================================
