import { connect } from "node:net";

/** The part of Cassandra's protocol (version 4) that is needed to check whether a node serves. */
const VERSION = 4;
const HEADER_BYTES = 9;
const OPCODE = { startup: 1, ready: 2, options: 5, supported: 6, query: 7, result: 8 } as const;
const CONSISTENCY_ALL = 5;
const ANSWER_DEADLINE_MS = 2_000;
const STARTUP = startupBody("CQL_VERSION", "3.0.0");
/** Every node is a replica of this table, so with consistency ALL every node must answer. */
const QUERY_ALL = "SELECT keyspace_name FROM system_distributed.view_build_status LIMIT 1";

/** True if a node answers CQL. */
export function answersCql(address: string, port: number): Promise<boolean> {
  return converse(address, port, [{ opcode: OPCODE.options, body: Buffer.alloc(0), expected: OPCODE.supported }]);
}

/** True if a node serves and reaches every other node of a ring of up to three. */
export function answersWithAllReplicas(address: string, port: number): Promise<boolean> {
  return converse(address, port, [
    { opcode: OPCODE.startup, body: STARTUP, expected: OPCODE.ready },
    { opcode: OPCODE.query, body: queryBody(QUERY_ALL, CONSISTENCY_ALL), expected: OPCODE.result },
  ]);
}

interface Step {
  readonly opcode: number;
  readonly body: Buffer;
  readonly expected: number;
}

/** True if every step was answered as expected. Answers are so short that each arrives in one piece. */
function converse(host: string, port: number, steps: readonly Step[]): Promise<boolean> {
  return new Promise((resolve) => {
    let at = 0;
    const socket = connect(port, host, () => send());
    const send = (): void => {
      const step = steps[at];
      if (step === undefined) end(true);
      else socket.write(frame(step));
    };
    const end = (yes: boolean): void => {
      socket.destroy();
      resolve(yes);
    };
    socket.setTimeout(ANSWER_DEADLINE_MS, () => end(false));
    socket.once("error", () => end(false));
    socket.once("close", () => end(false));
    socket.on("data", (answer) => {
      if (answer[4] !== steps[at]?.expected) return end(false);
      at++;
      send();
    });
  });
}

function frame(step: Step): Buffer {
  const header = Buffer.alloc(HEADER_BYTES);
  header[0] = VERSION;
  header[4] = step.opcode;
  header.writeUInt32BE(step.body.length, 5);
  return Buffer.concat([header, step.body]);
}

function startupBody(name: string, value: string): Buffer {
  return Buffer.concat([
    shortInt(1),
    shortInt(name.length),
    Buffer.from(name),
    shortInt(value.length),
    Buffer.from(value),
  ]);
}

function queryBody(query: string, consistency: number): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(query.length);
  return Buffer.concat([length, Buffer.from(query), shortInt(consistency), Buffer.of(0)]);
}

function shortInt(value: number): Buffer {
  const bytes = Buffer.alloc(2);
  bytes.writeUInt16BE(value);
  return bytes;
}
