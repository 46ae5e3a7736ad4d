/**
 * Promises of odp under failure, the tests that prove them, and the findings of these tests. The page of promises is
 * generated from this.
 */
export interface FailurePromise {
  readonly promise: string;
  /** Test files, from the root of the project. */
  readonly tests: readonly string[];
  /** Findings of the tests, and how they were fixed. */
  readonly found: readonly string[];
}

export const PROMISES = {
  "store-crash-rounds": {
    promise: "What was answered as stored is there after a kill -9, whole and once, whatever the moment.",
    tests: ["controller/store/embedded/crash.test.ts"],
    found: [],
  },
  "ingest-same-rows": {
    promise:
      "Whatever controllers get a batch, paused, killed or at the same moment: each line of an agent is stored once, as a record or as an error, and a keyed object ends as its last line says.",
    tests: ["controller/areas/ingest/holders.test.ts"],
    found: [
      "The mark of a stream was written unconditionally: a controller that woke set it back, or stored the same lines by another rule text. Now nothing rests on the mark: the agent pins the digests and the write time before it sends, and every controller makes the same rows of that.",
      "That a rule could not be used was not pinned: a repetition after the rule was mended stored an error and a record of one line. Now the error is pinned too.",
      "A line of a keyed class that was written late overwrote what a newer line had made. Now each batch is pinned to the times of its writes.",
      "A hole inside a batch was refused, so that one damaged frame in an outbox would have held its stream up for ever. Now it is a gap record and the stream goes on.",
    ],
  },
  "job-one-final-state": {
    promise:
      "A job run ends in one final state on each host, decided once for all controllers; when its controller is gone, another one goes on with it.",
    tests: ["controller/areas/jobs/runs/takeover.test.ts"],
    found: [
      "A controller that woke wrote its own end over the one that was on record. Now the end is decided by a condition in the key-value store, then written into the row at a settled time.",
      "A run lost with its controller became `expired` although the agent had told how it ended. Now what the agent said decides.",
      "A controller that died between the row of a run and its entry left a row that ran for ever. Now the entry comes first.",
      "Runs that were opened while their execution failed counted as worked on until the next start of the controller and were never ended. Now a run counts only while it is worked on.",
    ],
  },
  "deployment-one-final-state": {
    promise:
      "A deployment is on record before anything of it is sent, and each host and depot of it ends in one final state, also when its controller goes away or sleeps.",
    tests: ["controller/areas/depots/deployment.test.ts"],
    found: [
      "A deployment whose controller died left no record at all. Now what is meant is written first, and another controller ends it, as the agents said or as expired.",
      "A controller that woke would have added records of its own to those written meanwhile. Now each host's outcomes are decided once, under a condition.",
    ],
  },
  "agent-command-once": {
    promise:
      "An agent begins a command at most once, and none of an epoch that has passed, also between the arrival of two frames and their being on disk.",
    tests: ["agent/commands/journal.test.ts"],
    found: [
      "While a higher epoch was being written, a lower one still passed and was written over it. Now what is being written counts.",
      "A command that came twice before the first was on disk was begun twice. Now it counts as begun from the moment it is being written.",
    ],
  },
  "files-keep-their-content": {
    promise:
      "Who replaces a file, however late, and dies at whatever point of it, never takes the content from who wrote the file meanwhile.",
    tests: ["controller/areas/files/service.test.ts"],
    found: [
      "The mark that keeps a content bore the name of the file: a writer that slept and then died right after taking off the old content's mark had taken off the one of a newer write of the same content. Now each write has a mark of its own.",
    ],
  },
  "imports-are-whole": {
    promise:
      "An import whose controller dies, at whatever point of it, is gone on with by another one until all of it is there, every row once; who comes back late changes nothing.",
    tests: ["controller/areas/transfer/import.test.ts"],
    found: [],
  },
  "batches-are-whole": {
    promise:
      "A batch of MQL whose controller dies, at whatever write of it, is made whole by another one, each change once in effect; a controller that pauses in the middle and wakes changes nothing more.",
    tests: ["controller/areas/query/batch/takeover.test.ts"],
    found: [],
  },
  "controllers-lose-nothing": {
    promise:
      "Of several controllers that write one object at the same moment, one of them five seconds behind, none loses an attribute, element, entry or edge that was answered with ok; nothing removed comes back; every indexed value and word finds its object.",
    tests: ["controller/areas/objects/writing/races.test.ts"],
    found: [
      "A word that two columns share fell out of the index when two controllers edited both. Now it is dropped with the time of what was read, and whoever added it looks once more.",
      "An object inserted by a controller whose clock is behind stayed covered by the removal before. Now a removal leaves its time behind, and the next object of that name is written above it.",
      "Cells and edges of an update that crossed the removal of its object were part of the next one of that name. Now the insert takes them away, each with its own time.",
      "An update that added edges and then set them anew kept both. Now the later edit of one statement replaces what the earlier one added.",
      "Two controllers could give two writes the same time. Now each has a number of its own under its lease, which is part of every time.",
    ],
  },
  "exactly-once": {
    promise:
      "Of a log that is rotated by rename and by copy and truncation every line is there exactly once, and every scheduled run of a policy is one record or counted by one gap, though agent and controller are killed again and again, and on a ring a node of Cassandra and a member of etcd.",
    tests: ["test/e2e/exactly-once.test.ts", "test/e2e/exactly-once.ring.test.ts"],
    found: [],
  },
  "scripted-effects": {
    promise:
      "What a trigger before a write does to its object and what one after it does to others is there once for each change, of imports, batches and thousands of writes of one object, and so is what the body of a rule makes, though controllers and agent are killed.",
    tests: ["test/e2e/effects.test.ts", "test/e2e/two-controllers.test.ts"],
    found: [],
  },
  "log-rotation": {
    promise:
      "However a log is rotated and whenever the agent is killed, each of its lines is read once as long as it is in some file.",
    tests: ["agent/plugins/log-policy/rotation/rotation.test.ts", "test/e2e/rotations.test.ts"],
    found: [
      "What was not read of a file when it was copied and cut off was lost, although the copy held it. Now a life of a file is known by its inode and by what was read of it, and goes on in the copy.",
      "A copy that was looked at while it was being made, when it was still empty or short, was taken for a new file and its lines came twice. Now what is the beginning of a followed file is left alone.",
      "A new file that was given the inode of a deleted one was taken for its continuation. Now the content must agree, and of two claims to an inode the later one holds.",
      "A file that was renamed while two files were compared by name was taken for the other. Now a name counts only with the inode that was seen there.",
      "The beginning of a file that was cut off during a read was noted as the beginning of what had been read. Now both come from one read, checked after it.",
      "The ninth copy of a file that was cut off was read again. Now every life is remembered for as long as its file or copy exists.",
      "After a restart a renamed file was looked for under its old name. Now the new name is kept.",
      "A life that began and was packed between two looks was lost without a gap. Now it is read out of the packed file.",
    ],
  },
  "truncation-is-told": {
    promise:
      "A file that is cut off is told by one gap record with the bytes known to be lost, those of a copy that could not be compared in time among them, and the time nobody looked; what a writer loses that is not halted between copy and truncation lies within.",
    tests: [
      "test/e2e/exactly-once.test.ts",
      "agent/plugins/log-policy/rotation/rotation.test.ts",
      "agent/plugins/log-policy/rotation/copies.test.ts",
    ],
    found: [
      "A file cut off of which everything seen had been read was silent about what nobody had seen. Now it is told, and the count goes by the place of the writer's last write, which Linux shows.",
      "The time of the last look was taken after it, so that a line written in between lay outside of the gap. Now it is taken before.",
    ],
  },
  "outbox-lost": {
    promise:
      "An agent whose outbox was deleted says so with a record `outbox_lost` and reads its files on from where the controllers had everything: nothing that is still in a file is left out, and lines come twice only from the seconds that record names.",
    tests: ["agent/outbox/copy.test.ts", "test/e2e/exactly-once.test.ts"],
    found: [
      "All files were read again from their beginnings, and nothing told that anything was missing. Now the marks have a copy beside the outbox.",
    ],
  },
  "rule-edited": {
    promise:
      "While a rule is edited and everything is killed, each line is an object by one of its texts, none by two, none by neither.",
    tests: ["test/e2e/exactly-once.test.ts"],
    found: [],
  },
  "simulated-histories": {
    promise:
      "In short histories with cuts, delays, silent and half-open lines, crashes, power cuts, held-up controllers and failing stores nothing acknowledged is lost, no record is doubled, every due run is accounted for once, every target has one final state, no command runs twice or under an epoch that has passed; and each history replays exactly from its seed.",
    tests: ["test/sim/histories.test.ts", "test/sim/scenarios.test.ts"],
    found: [
      "A piece of job output that came after a failed write of the piece before made the controller go round in circles for ever. Now nothing more is written after a failure.",
      "A run that was told to stop while its records waited for room dropped them, and its record counted them. Now they go with its end.",
      "A policy that was taken off while the outbox was full left the due times of that while uncounted. Now they are a gap, written before the policy goes.",
    ],
  },
  "controllers-fail-over": {
    promise:
      "When one of two controllers is killed or paused, the agents it held work with the other one within ten seconds: jobs end with their whole output once, records flow, sockets hear. When it wakes it does no harm and serves again.",
    tests: ["test/e2e/two-controllers.test.ts"],
    found: [
      "An agent noticed a paused controller after thirty to forty seconds, and then tried the same one again. Now heartbeats show it within six, and the others are tried at once.",
      "Policies deployed at one controller did not reach agents of another before they connected anew. Now the holder is told, and looks by itself once a minute.",
      "Two writes of an agent's identity could cross: a renewed certificate and a new list of controllers. Now they are written one after the other.",
    ],
  },
  "orderly-stop": {
    promise:
      "An orderly stop answers every call that it finds: what ends within three seconds as usual, then what had not begun as `unavailable` and the rest as `unknown_outcome`; rows that are being sent break off, and no client holds up the stop.",
    tests: ["controller/http/connections/stop.test.ts"],
    found: [
      "Node keeps a connection open for 65 seconds behind its last answer: one such client held a stop until the controller was killed. Now a connection ends with its last answer.",
      "A call whose body was still coming was carried out behind the answer that it was not. Now no handler begins for a call that is over.",
    ],
  },
  "schedules-change-hands": {
    promise:
      "While the one of three controllers that fires schedules is killed, paused or cut off from etcd again and again, every due time has one run, every target of it ends in one final state by its deadline, and no command is carried out twice.",
    tests: ["test/e2e/leaders.test.ts"],
    found: [],
  },
  "command-output-once": {
    promise:
      "A command called at any controller has its output byte for byte once and one end, whichever controllers hold the agent meanwhile and whatever hints among them are lost, doubled or late.",
    tests: ["controller/areas/hosts/commands/wait.test.ts", "controller/grpc/peers.test.ts"],
    found: [
      "A command repeated under its id after a controller's restart waited for its deadline. Now it ends at once by what is stored.",
      "What came in the very turn in which a loop of reading or storing ended was left lying until something else came: entries of an agent, the status of a host, the end of a command (seed 92). Now the loop says that it is over in the turn of its last look.",
      "A controller that woke would have sent commands in sessions whose lease was over, before its timers said so. Now it asks the lease by the clock.",
      "A command that an agent refused because its epoch had passed ended as failed although it was sent again under the present one. Now such a refusal ends nothing.",
    ],
  },
  "peer-certificates": {
    promise:
      "A controller's certificate opens the peer service and nothing of agents, an agent's the agent service and nothing of peers.",
    tests: ["controller/grpc/peers.test.ts"],
    found: [],
  },
  "ring-churn": {
    promise:
      "On a ring of three, objects are found by what they are, and by nothing else, edges are the same at both ends, and every version is there that has not ended, after all of it came, changed and went many times while Cassandra nodes were killed and paused and controllers were stopped in the middle of their writes.",
    tests: ["test/ring/churn.test.ts"],
    found: [],
  },
  "ring-loss": {
    promise:
      "On a ring of three, writing and reading go on while a Cassandra node, an etcd member (also the leader) or both are killed or paused. Nothing answered ok is missing or doubled, no watch leaves out a change, no lease ends, no call outlasts its deadline. No outcome is unknown unless the leader of etcd is lost. Every run loses a Cassandra node and the leader; the soak tries all seven losses.",
    tests: ["test/ring/loss.test.ts"],
    found: [
      "A change with a version was a logged batch, which of three nodes needs both others of its coordinator: for 20 s after a loss every one failed after 2 s, and some ended as unknown at 12 s. Now it is plain writes, the entity last.",
      "A call to Cassandra could take 15 s instead of its 12 s, since the driver asks every node in turn. Now the call ends by its own deadline, as do calls that wait for their turn.",
      "Every call to etcd took a member by chance, so that one which hangs took its third of all calls, watches and renewals of leases. Now one member is in use until it fails, is silent at a probe or knows no leader; then reads and watches go elsewhere.",
      "A write given up on a member that hangs was done when it woke, over a later write. Now each is done only over what its sender can have known of.",
      "A new statement was prepared on all nodes before its first use and waited for the one that hangs. Now each node prepares it when it meets it.",
      "Waiting for etcd went by the time of day. Now it goes by the monotonic clock.",
    ],
  },
  "ring-majority-lost": {
    promise:
      "While two of three Cassandra nodes or etcd members are lost, every call ends by its deadline and says `unavailable`, or `unknown_outcome` where that is so; the same calls succeed when they are back, and nothing is missing or doubled. Every run kills two members of etcd; `npm run soak -- --ring` kills two Cassandra nodes as well.",
    tests: ["test/ring/loss.test.ts"],
    found: [
      "A controller on a ring gave its first tenant a single replica unless it was told otherwise. Now it is three, or as many as there are nodes.",
      "Two Cassandra nodes killed at once took records with them that both had answered and neither had written: their commit log was synced every ten seconds. Now a ring answers when its disks have the write, and operators are told to run theirs so.",
    ],
  },
  "ring-disk-full": {
    promise:
      "While the disk of one Cassandra node or one etcd member is full, writing and reading go on, and what was answered ok is there when it serves again. Every run fills the disk of a Cassandra node; `npm run soak -- --ring` that of a member of etcd as well.",
    tests: ["test/ring/loss.test.ts"],
    found: [],
  },
  "ring-clocks-apart": {
    promise:
      "Of two controllers whose clocks are five seconds apart each sees and overwrites what the other wrote; marks on contents, leases and lifetimes hold.",
    tests: ["test/ring/clocks.test.ts"],
    found: [
      "A mark on content that was set by a controller behind in time, soon after another had taken it away, was lost without a word, and the content with the next sweep. Now who takes a mark away leaves the time, and the next mark is above it.",
      "With a clock behind, every call to etcd would have been past its deadline at once, with one ahead never. Now deadlines go by the monotonic clock.",
    ],
  },
  "agent-power-cut": {
    promise:
      "After a power cut an agent has everything it answered for: entries, positions, the journal of commands, what is wanted of it, who it is, and depots whose deployment was told. Nothing torn is sent, nothing is sent twice under one number.",
    tests: [
      "test/durability/outbox.test.ts",
      "test/durability/small-files.test.ts",
      "test/durability/traced-agent.test.ts",
    ],
    found: [
      "The folder of the outbox was made and never synced in the folder above: its name, and all that was answered, could be lost. Now every folder of our own is made durable, up to the root.",
      "Appends that shared one sync were frames of their own: a power cut could lose the first and leave the second, a hole in the sequence. Now what one sync makes durable is one frame.",
      "A killed agent's last write was taken over without a sync: it was sent, and a power cut could then lose it. Now what is found is synced before it is acted on.",
      "A file of the outbox that could not be finished was deleted without a sync; if it came back, it hid what had been written since. Now a file that begins before its predecessor ends is known for what it is.",
      "A file that is replaced in one step was written anew under the name of the last attempt, which a power cut could have left as a second name of the present one. Now it is a new file each time.",
      "A stream that was to be renamed had its new name in memory even when it could not be written down. Now the name changes with the file.",
      "The files of a depot were copied and never synced: a version that was told to be in place could be torn, and was taken for whole ever after. Now they are synced before their folder gets its name.",
      "An agent that was killed with a full outbox waited for room before it opened the link that alone makes room. Now the results of what was interrupted are written beside the link.",
      "A write whose sync failed stayed in the memory of the system, where the next agent found it and went on behind it: a power cut lost it, and with it all that followed. Now the frame that is found last is written again before anything follows it.",
      "A file of the outbox that could not be finished and came back after a power cut hid marks that had been written without entries since, or brought the new name of the stream. Now its removal is made durable before anything else is written.",
      "Files of the outbox that held only what had arrived were deleted together: a power cut could bring an older one back without the next, a hole in the sequence. Now each is gone for good before the next one goes.",
    ],
  },
  "embedded-power-cut": {
    promise:
      "After a power cut the embedded store has every content, every stream and the key of its secrets as it answered them; what is half written is never served.",
    tests: [
      "test/durability/blobs.test.ts",
      "test/durability/small-files.test.ts",
      "test/durability/traced-store.test.ts",
    ],
    found: [
      "A stream reached as far as its file: what a power cut left behind its end was served, and made every repetition a conflict. Now its size is a row that is written after the bytes.",
      "A stream, a content or a key file whose maker was killed before the name was durable was used by the next process as if it were. Now names are synced before anything is answered on them.",
      "The names of the folders of a tenant and of LMDB's own file were never synced, nor was the removal of a tenant. Now they are.",
      "A power cut in the first moments of a store left a file of LMDB that ended every process which opened it. Now a new environment gets its name when it is whole on the disk.",
    ],
  },
  "definitions-across-a-pause": {
    promise:
      "A change of class definitions is known to every controller when it is answered; what a controller that was stopped meanwhile answers with ok is right by the new definitions, and it harms nothing.",
    tests: [
      "controller/areas/objects/definitions/definitions.test.ts",
      "controller/areas/objects/definitions/stopped-writers.test.ts",
      "test/e2e/two-controllers.test.ts",
    ],
    found: [
      "An object inserted on one controller while another dropped its class stayed as an orphan and was answered with ok. Now a class is marked first, and goes when every controller has acknowledged the mark or its lease is over.",
      "A controller that woke from a pause wrote by old definitions until its timers fired. Now a lease is asked by the clock, before a write and between the write and its answer; what was written is brought to the new definitions or refused.",
      "A controller that woke read by an index that was dropped meanwhile, and missed rows. Now it reads the definitions anew first, and an index is dropped in two steps.",
    ],
  },
  "config-linearizable": {
    promise:
      "What clients read, write, delete and let expire in the configuration at several controllers happened one by one, in an order that fits what each of them saw, also where the store loses calls and answers, and while members of etcd are killed and paused. Every run kills the leader of etcd and pauses a majority; `npm run soak -- --ring` goes through all five losses.",
    tests: ["controller/areas/config/histories.test.ts", "test/ring/config.test.ts"],
    found: [],
  },
  "config-change-whole": {
    promise:
      "An import into the configuration, or a delete of a directory, that takes several transactions is made whole once its first key is written, each key once, whatever controller dies or sleeps in the middle.",
    tests: ["controller/areas/config/changes.test.ts"],
    found: [],
  },
  "bad-neighbours": {
    promise:
      "Rubbish, wrong frames, huge messages, agents and clients that never read or never end, floods of agents, entries and calls: others go on, and what waits stays within its bounds.",
    tests: [
      "test/e2e/neighbours.test.ts",
      "controller/areas/hosts/session/entry-room.test.ts",
      "controller/turns/turns.test.ts",
    ],
    found: [
      "What agents sent and was not stored yet was bounded by its count only: 512 entries of 16 MiB each. Now it is bounded in bytes, of each and of all, and streams wait for room.",
      "A tenant with hundreds of calls made a single call of another wait behind all of them. Now calls of several tenants begin in rotation.",
      "Fifty clients that did not read an answer of eight megabytes cost 900 MB: pages of rows were up to 16 MiB and made into text whole. Now a page is a mebibyte and its text is made in pieces.",
    ],
  },
} as const satisfies Readonly<Record<string, FailurePromise>>;

export type PromiseId = keyof typeof PROMISES;
