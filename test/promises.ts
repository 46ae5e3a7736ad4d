/**
 * Promises of odp under failure, the tests that prove them, and the findings of these tests. The page of promises is
 * generated from this.
 */
export interface FailurePromise {
  readonly promise: string;
  /** Test files, from the root of the project. */
  readonly tests: readonly string[];
  /** Present: only the soak runs these tests. */
  readonly isSoak?: true;
  /** Findings of the tests, and how they were fixed. */
  readonly found: readonly string[];
}

export const PROMISES = {
  "store-crash-rounds": {
    promise:
      "After a kill -9 at any moment, every write that was answered as stored is complete and stored exactly once.",
    tests: ["controller/store/embedded/crash.test.ts"],
    found: [],
  },
  "ingest-same-rows": {
    promise:
      "Any controllers may receive a batch, also paused, killed or at the same moment: each line of an agent is stored once, as a record or as an error, and a keyed object ends with the values of its last line.",
    tests: ["controller/areas/ingest/holders.test.ts"],
    found: [
      "The mark of a stream was written unconditionally: a controller that woke set it back, or stored the same lines by another rule text. Now nothing depends on the mark: the agent pins the digests and the write time before it sends, and every controller makes the same rows from them.",
      "An unusable rule was not pinned: a repetition after the rule was repaired stored an error and a record of one line. Now the error is pinned too.",
      "A late write of a line of a keyed class overwrote the values of a newer line. Now each batch is pinned to the times of its writes.",
      "A hole inside a batch was refused, so one damaged frame in an outbox would have blocked its stream forever. Now it becomes a gap record and the stream continues.",
    ],
  },
  "job-one-final-state": {
    promise:
      "A job run ends in one final state on each host, decided once for all controllers. If its controller is gone, another one continues the run.",
    tests: ["controller/areas/jobs/runs/takeover.test.ts"],
    found: [
      "A controller that woke overwrote the recorded end with its own. Now the end is decided by a condition in the key-value store, then written into the row at a fixed time.",
      "A run whose controller was lost became `expired` although the agent had reported its end. Now the agent's report decides.",
      "A controller that died between writing the row of a run and its entry left a row that ran forever. Now the entry is written first.",
      "Runs that began while their execution failed counted as in progress until the next start of the controller, and were never ended. Now a run counts only while a controller works on it.",
    ],
  },
  "deployment-one-final-state": {
    promise:
      "A deployment is on record before any part of it is sent. Each host and depot of it ends in one final state, also if its controller dies or sleeps.",
    tests: ["controller/areas/depots/deployment.test.ts"],
    found: [
      "A deployment whose controller died left no record at all. Now its targets are written first, and another controller ends it, as the agents reported or as expired.",
      "A controller that woke would have added its own records to those that were written meanwhile. Now the outcomes of each host are decided once, under a condition.",
    ],
  },
  "agent-command-once": {
    promise:
      "An agent begins a command at most once, and begins none of an older epoch, also while frames have arrived but are not on disk yet.",
    tests: ["agent/commands/journal.test.ts"],
    found: [
      "While a higher epoch was being written, a lower one was still accepted and overwrote it. Now the epoch that is being written counts.",
      "A command that arrived twice before the first one was on disk was begun twice. Now it counts as begun when its write begins.",
    ],
  },
  "files-keep-their-content": {
    promise:
      "A write that replaces a file never removes the content that another writer stored meanwhile, even if it is late or its controller dies at any step.",
    tests: ["controller/areas/files/service.test.ts"],
    found: [
      "The mark that keeps a content was named after the file. A writer could sleep, remove the mark of the old content and then die; this removed the mark of a newer write of the same content. Now each write has its own mark.",
    ],
  },
  "imports-are-whole": {
    promise:
      "If the controller of an import dies at any step, another one continues until the import is complete, with every row once. A controller that returns late changes nothing.",
    tests: ["controller/areas/transfer/import.test.ts"],
    found: [],
  },
  "batches-are-whole": {
    promise:
      "If the controller of an MQL batch dies at any write, another one completes the batch, and each change has its effect once. A controller that pauses in the middle and wakes changes nothing more.",
    tests: ["controller/areas/query/batch/takeover.test.ts"],
    found: [],
  },
  "controllers-lose-nothing": {
    promise:
      "Several controllers may write one object at the same moment, one of them with a clock five seconds behind. No attribute, element, entry or edge that was answered with ok is lost, nothing removed comes back, and every indexed value and word finds its object.",
    tests: ["controller/areas/objects/writing/races.test.ts"],
    found: [
      "A word that two columns share was lost from the index when two controllers edited both. Now it is dropped with the time of the value that was read, and the controller that added it checks once more.",
      "An object that a controller with a late clock inserted stayed hidden by the removal before. Now a removal stores its time, and the next object of that name is written above that time.",
      "Cells and edges of an update that crossed the removal of its object became part of the next object of that name. Now the insert removes them, each with its own time.",
      "An update that added edges and then set them again kept both. Now the later edit of a statement replaces the edges that the earlier one added.",
      "Two controllers could give two writes the same time. Now each controller has a number under its lease, which is part of every time.",
    ],
  },
  "exactly-once": {
    promise:
      "A log is rotated by rename and by copy and truncation, while agent and controller are killed again and again, and on a ring a Cassandra node and an etcd member too. Every line of the log is stored exactly once, and every scheduled run of a policy is one record or counted in one gap.",
    tests: ["test/e2e/exactly-once.test.ts", "test/e2e/exactly-once.ring.test.ts"],
    found: [],
  },
  "scripted-effects": {
    promise:
      "A trigger that runs before a write changes its object, and one that runs after it changes others. Both effects are stored once for each change of imports, batches and thousands of writes of one object, also while controllers and the agent are killed. The same holds for the rows that the body of a rule makes.",
    tests: ["test/e2e/effects.test.ts", "test/e2e/two-controllers.test.ts"],
    found: [],
  },
  "log-rotation": {
    promise:
      "Each line of a log is read once while some file contains it, for every kind of rotation and a kill of the agent at any moment.",
    tests: ["agent/plugins/log-policy/rotation/rotation.test.ts", "test/e2e/rotations.test.ts"],
    found: [
      "Lines that were unread when their file was copied and truncated were lost, although the copy contained them. Now the life of a file is identified by its inode and the part that was read, and continues in the copy.",
      "A copy that was scanned while it was still empty or short counted as a new file, and its lines came twice. Now a file that equals the beginning of a followed file is left alone.",
      "A new file with the inode of a deleted one counted as its continuation. Now the content must agree, and of two claims to an inode the later one holds.",
      "A file that was renamed while two files were compared by name was confused with the other file. Now a name counts only with the inode that was seen there.",
      "The beginning of a file that was truncated during a read was stored as the beginning of the text before. Now both come from one read, which is checked afterwards.",
      "The ninth copy of a truncated file was read again. Now every life is remembered while its file or copy exists.",
      "After a restart a renamed file was searched for under its old name. Now the new name is stored.",
      "A life that began and was packed between two scans was lost without a gap. Now it is read from the packed file.",
    ],
  },
  "truncation-is-told": {
    promise:
      "A truncated file makes one gap record. It has the bytes that are known to be lost, including those of a copy that could not be compared in time, and the time between the two scans. Lines that a program wrote between copy and truncation, because it was not stopped, are inside this gap.",
    tests: [
      "test/e2e/exactly-once.test.ts",
      "agent/plugins/log-policy/rotation/rotation.test.ts",
      "agent/plugins/log-policy/rotation/copies.test.ts",
    ],
    found: [
      "A truncated file made no gap if all bytes that were seen had been read, although later bytes may have been lost. Now it makes one, and the count uses the position of the writer's last write, which Linux shows.",
      "The time of the last scan was taken after it, so a line written in between was outside the gap. Now it is taken before.",
    ],
  },
  "outbox-lost": {
    promise:
      "An agent whose outbox was deleted reports it with a record `outbox_lost`, and reads its files from the last position that the controllers acknowledged. No line that a file still contains is left out, and lines are stored twice only from the seconds that the record names.",
    tests: ["agent/outbox/copy.test.ts", "test/e2e/exactly-once.test.ts"],
    found: [
      "All files were read again from their beginnings, and no record reported the loss. Now the marks have a copy next to the outbox.",
    ],
  },
  "rule-edited": {
    promise:
      "While a rule is edited and all programs are killed, each line becomes an object by one of the two texts, never by both and never by neither.",
    tests: ["test/e2e/exactly-once.test.ts"],
    found: [],
  },
  "simulated-histories": {
    promise:
      "Short simulated histories have cut, delayed, silent and half-open connections, crashes, power cuts, paused controllers and failing stores. In them nothing acknowledged is lost, no record is doubled, every due run is accounted for once, every target has one final state, and no command runs twice or under an older epoch. Each history replays exactly from its seed.",
    tests: ["test/sim/histories.test.ts", "test/sim/scenarios.test.ts"],
    found: [
      "A piece of job output that came after a failed write of an earlier piece put the controller into an endless loop. Now nothing more is written after a failure.",
      "A run that was stopped while its records waited for room dropped them, although its record counted them. Now they are sent with its end.",
      "A policy that was removed while the outbox was full left the due times of that period uncounted. Now they are a gap, which is written before the policy is removed.",
    ],
  },
  "controllers-fail-over": {
    promise:
      "When one of two controllers is killed or paused, the agents it held work with the other one within ten seconds: jobs end with their whole output once, records are stored, and WebSockets receive their messages. When it wakes, it does no harm and serves again.",
    tests: ["test/e2e/two-controllers.test.ts"],
    found: [
      "An agent noticed a paused controller after thirty to forty seconds, and then tried the same one again. Now heartbeats detect it within six seconds, and the agent tries the others at once.",
      "Policies deployed at one controller did not reach agents of another one until they reconnected. Now the controller that holds the agent is notified, and also checks once a minute.",
      "Two writes of an agent's identity could cross: a renewed certificate and a new list of controllers. Now they are written one after the other.",
    ],
  },
  "orderly-stop": {
    promise:
      "An orderly stop answers every call that is open. A call that ends within three seconds gets its usual answer. After that, a call that has not begun gets `unavailable`, and the others get `unknown_outcome`. Rows that are being sent break off, and no client delays the stop.",
    tests: ["controller/http/connections/stop.test.ts"],
    found: [
      "Node keeps a connection open for 65 seconds after its last answer: one such client delayed a stop until the controller was killed. Now a connection ends with its last answer.",
      "A call whose body was still arriving was carried out after the answer that it was not. Now no handler begins for a call that is over.",
    ],
  },
  "schedules-change-hands": {
    promise:
      "One of three controllers fires schedules. While that one is killed, paused or cut off from etcd again and again, every due time has one run, every target of it ends in one final state by its deadline, and no command is carried out twice.",
    tests: ["test/e2e/leaders.test.ts"],
    found: [],
  },
  "command-output-once": {
    promise:
      "A command may be called at any controller. Its output is complete, byte for byte and once, and it ends once, also if its agent moves between controllers and if their hints to each other are lost, doubled or late.",
    tests: ["controller/areas/hosts/commands/wait.test.ts", "controller/grpc/peers.test.ts"],
    found: [
      "A command repeated under its id after a controller's restart waited for its deadline. Now it ends at once with the stored result.",
      "Input that arrived in the same turn in which a loop of reading or storing ended was not processed until the next input came: entries of an agent, the status of a host, the end of a command (seed 92). Now the loop reports its end in the turn of its last check.",
      "A controller that woke would have sent commands in sessions whose lease had expired, before its timers fired. Now it checks the lease by the clock.",
      "A command that an agent refused because of an older epoch ended as failed although it was sent again under the present epoch. Now such a refusal ends nothing.",
    ],
  },
  "peer-certificates": {
    promise:
      "A controller's certificate opens the peer service and no service for agents. An agent's certificate opens the agent service and no peer service.",
    tests: ["controller/grpc/peers.test.ts"],
    found: [],
  },
  "ring-churn": {
    promise:
      "On a ring of three, objects are created, changed and removed many times while Cassandra nodes are killed and paused and controllers are stopped in the middle of their writes. Afterwards each object is found by its present values and by no others, edges are the same at both ends, and every version that has not expired exists.",
    tests: ["test/ring/churn.test.ts"],
    isSoak: true,
    found: [],
  },
  "ring-loss": {
    promise:
      "On a ring of three, writing and reading continue while a Cassandra node, an etcd member (also the leader) or both are killed or paused. Nothing answered ok is missing or doubled. No watch leaves out a change, no lease ends, no call exceeds its deadline. An outcome is unknown only if the leader of etcd is lost. Every run tries two losses, the soak all seven.",
    tests: ["test/ring/loss.test.ts"],
    found: [
      "A change with a version was a logged batch, which on three nodes needs both other nodes of its coordinator: for 20 s after a loss every one failed after 2 s, and some ended as unknown at 12 s. Now it is plain writes, the entity last.",
      "A call to Cassandra could take 15 s instead of its 12 s, because the driver asks every node in turn. Now the call ends by its own deadline, as do calls that wait in the queue.",
      "Every call to etcd used a random member, so a member that hung delayed a third of all calls, watches and lease renewals. Now one member is in use until it fails, does not answer a probe or knows no leader; then reads and watches move to another one.",
      "A write that was given up at a member that hung was carried out when the member woke, over a later write. Now each write has a condition: it replaces only values that its sender can have known.",
      "A new statement was prepared on all nodes before its first use and waited for a node that hung. Now each node prepares it at its first use there.",
      "Waits for etcd used the time of day. Now they use the monotonic clock.",
    ],
  },
  "ring-majority-lost": {
    promise:
      "While two of three Cassandra nodes or etcd members are lost, every call ends by its deadline with `unavailable`, or with `unknown_outcome` if the write may have happened. The same calls succeed when the members are back, and nothing is missing or doubled. Every run kills two members of etcd; `npm run soak -- --ring` kills two Cassandra nodes as well.",
    tests: ["test/ring/loss.test.ts"],
    found: [
      "A controller on a ring gave its first tenant a single replica unless a setting said otherwise. Now it is three, or the number of nodes if there are fewer.",
      "Two Cassandra nodes killed at once lost records that both had acknowledged and neither had on disk: their commit log was synced every ten seconds. Now a ring acknowledges when the write is on its disks, and the pages for operators require this setting.",
    ],
  },
  "ring-disk-full": {
    promise:
      "While the disk of one Cassandra node or one etcd member is full, writing and reading continue, and every write that was answered ok is there when that member serves again. Every run fills the disk of a Cassandra node; `npm run soak -- --ring` fills the disk of an etcd member as well.",
    tests: ["test/ring/loss.test.ts"],
    found: [],
  },
  "ring-clocks-apart": {
    promise:
      "Two controllers with clocks five seconds apart see and overwrite each other's writes. Marks on contents, leases and lifetimes hold.",
    tests: ["test/ring/clocks.test.ts"],
    found: [
      "A mark on content that a controller with a late clock set soon after another one had removed it was lost silently, and the next sweep removed the content. Now the removal stores its time, and the next mark is written above it.",
      "With a clock that is behind, every call to etcd would have exceeded its deadline at once; with a clock ahead, never. Now deadlines use the monotonic clock.",
    ],
  },
  "agent-power-cut": {
    promise:
      "After a power cut an agent has everything that it acknowledged: entries, positions, the journal of commands, its desired state, its identity, and depots whose deployment it reported. No incomplete entry is sent, and no two entries are sent under one number.",
    tests: [
      "test/durability/outbox.test.ts",
      "test/durability/small-files.test.ts",
      "test/durability/traced-agent.test.ts",
    ],
    found: [
      "The folder of the outbox was created and never synced in its parent folder: its name, and all that was acknowledged, could be lost. Now every folder that the agent creates is made durable, up to the root.",
      "Appends that shared one sync were separate frames: a power cut could lose the first and leave the second, a hole in the sequence. Now all that one sync makes durable is one frame.",
      "A killed agent's last write was used without a sync: it was sent, and a power cut could then lose it. Now the agent syncs what it finds before it acts on it.",
      "An unfinished file of the outbox was deleted without a sync; if it came back, it hid later writes. Now a file that begins before its predecessor ends is recognised as such.",
      "A file that is replaced in one step was written under the temporary name of the last attempt. After a power cut this name could be a second name of the present file. Now it is a new file each time.",
      "A stream that was to be renamed had its new name in memory even if it could not be stored. Now the name changes with the file.",
      "The files of a depot were copied and never synced: a version that was reported as deployed could be incomplete, and counted as complete from then on. Now they are synced before their folder gets its name.",
      "An agent that was killed with a full outbox waited for room before it opened the connection, which alone makes room. Now the results of interrupted work are written while the connection opens.",
      "A write whose sync failed stayed in the page cache, where the next agent found it and appended after it: a power cut lost it, and all later writes with it. Now the last frame that is found is written again before anything is appended.",
      "An unfinished file of the outbox that came back after a power cut hid marks that were written later without entries, or brought the new name of the stream. Now its removal is made durable before anything else is written.",
      "Files of the outbox with acknowledged entries only were deleted together: a power cut could bring an older one back without the next, a hole in the sequence. Now the removal of each is durable before the next one is deleted.",
    ],
  },
  "embedded-power-cut": {
    promise:
      "After a power cut the embedded store has every content, every stream and the key of its secrets, as it acknowledged them. Half-written data is never served.",
    tests: [
      "test/durability/blobs.test.ts",
      "test/durability/small-files.test.ts",
      "test/durability/traced-store.test.ts",
    ],
    found: [
      "A stream was as long as its file: bytes that a power cut left after its end were served, and made every repetition a conflict. Now its size is a row that is written after the bytes.",
      "A stream, a content or a key file was used by the next process as if it were durable, although its writer was killed before its name was. Now names are synced before any answer depends on them.",
      "The names of the folders of a tenant and of LMDB's own file were never synced, nor was the removal of a tenant. Now they are.",
      "A power cut in the first moments of a store left an LMDB file that ended every process which opened it. Now a new environment gets its name when it is complete on the disk.",
    ],
  },
  "definitions-across-a-pause": {
    promise:
      "When a change of class definitions is answered, every controller knows it. If a controller was stopped meanwhile, each of its ok answers is correct by the new definitions, and it harms nothing.",
    tests: [
      "controller/areas/objects/definitions/definitions.test.ts",
      "controller/areas/objects/definitions/stopped-writers.test.ts",
      "test/e2e/two-controllers.test.ts",
    ],
    found: [
      "An object inserted on one controller while another dropped its class stayed as an orphan and was answered with ok. Now a class is marked first, and removed when every controller has acknowledged the mark or has lost its lease.",
      "A controller that woke from a pause wrote by old definitions until its timers fired. Now it checks its lease by the clock, before a write and between the write and its answer; a write by old definitions is brought to the new ones or refused.",
      "A controller that woke read by an index that was dropped meanwhile, and missed rows. Now it reads the definitions again first, and an index is dropped in two steps.",
    ],
  },
  "config-linearizable": {
    promise:
      "Clients read, write, delete and expire entries of the configuration at several controllers. All these operations happen one by one, in an order that fits what each client saw, also if the store loses calls and answers, and while etcd members are killed and paused. Every run kills the leader of etcd and pauses a majority; `npm run soak -- --ring` tries all five losses.",
    tests: ["controller/areas/config/histories.test.ts", "test/ring/config.test.ts"],
    found: [],
  },
  "config-change-whole": {
    promise:
      "An import into the configuration, or a delete of a directory, may take several transactions. Once its first key is written, all of it is written, each key once, also if a controller dies or sleeps in the middle.",
    tests: ["controller/areas/config/changes.test.ts"],
    found: [],
  },
  "bad-neighbours": {
    promise:
      "Agents and clients may send garbage, wrong frames or huge messages, never read, never end, or arrive as a flood of agents, entries and calls. Other agents and clients continue to work, and all queues stay within their bounds.",
    tests: [
      "test/e2e/neighbours.test.ts",
      "controller/areas/hosts/session/entry-room.test.ts",
      "controller/turns/turns.test.ts",
    ],
    found: [
      "Entries that agents had sent and that were not stored yet were bounded by their count only: 512 entries of 16 MiB each. Now they are bounded in bytes, for each agent and in all, and streams wait for room.",
      "A tenant with hundreds of calls made a single call of another tenant wait behind all of them. Now calls of several tenants begin in rotation.",
      "Fifty clients that did not read an answer of eight megabytes cost 900 MB: pages of rows had up to 16 MiB and became text in one piece. Now a page is a mebibyte and becomes text in pieces.",
    ],
  },
} as const satisfies Readonly<Record<string, FailurePromise>>;

export type PromiseId = keyof typeof PROMISES;
