import { loadIdentity, type Identity } from "../../agent/identity/identity.ts";
import { Outbox } from "../../agent/outbox/outbox.ts";
import { work } from "../../agent/work.ts";
import { ForgetfulFiles } from "../helpers/engines/forgetful-files.ts";
import { simulatedExec } from "./exec.ts";
import type { Ledger } from "./ledger.ts";
import type { Network } from "./network.ts";
import { Process } from "./process.ts";
import type { World } from "./world.ts";

const FOLDER = "/agent";
const OUTBOX_BYTES = 64 * 1024;

export interface HostOptions {
  readonly name: string;
  readonly world: World;
  readonly network: Network;
  readonly ledger: Ledger;
  readonly identity: Identity;
  readonly outboxBytes?: number;
}

/** A monitored host: a disk that can lose data, and an agent that is started and killed. */
export class Host {
  readonly name: string;
  readonly disk: ForgetfulFiles;
  readonly skew = { ms: 0 };
  readonly #options: HostOptions;
  #process: Process | undefined;
  #ending = new AbortController();
  #working: Promise<void> = Promise.resolve();
  #linked = false;

  constructor(options: HostOptions) {
    this.#options = options;
    this.name = options.name;
    this.disk = new ForgetfulFiles(Math.floor(options.world.random.next() * 2 ** 32));
  }

  get running(): boolean {
    return this.#process?.alive ?? false;
  }

  /** True if its agent holds a session and has recorded that. */
  get linked(): boolean {
    return this.running && this.#linked;
  }

  start(): void {
    const { name, world, ledger } = this.#options;
    this.#linked = false;
    const process = new Process({ name, world, skew: this.skew });
    this.#process = process;
    this.#ending = new AbortController();
    world.note(`${name} starts`);
    const { signal } = this.#ending;
    this.#working = this.#work(process, signal).catch((error: unknown) => {
      ledger.violations.push(`the agent of ${name} failed: ${String(error)}`);
    });
  }

  kill(withPower: boolean): void {
    const { name, world, network } = this.#options;
    world.note(`${name} ${withPower ? "loses power" : "is killed"}`);
    if (withPower) network.silence(name);
    this.#process?.kill();
    if (withPower) this.disk.powerCut();
    else this.disk.kill();
  }

  /** Stops it in good order. */
  async stop(): Promise<void> {
    this.#ending.abort();
    await this.#working;
    this.#process?.kill();
  }

  /** Entries left in its outbox, read from outside after the agent has ended. */
  async unsent(): Promise<{ acknowledged: number; next: number }> {
    const { world } = this.#options;
    const outbox = await Outbox.open({
      folder: `${FOLDER}/outbox`,
      clock: world.clock,
      random: world.random,
      maxBytes: this.#options.outboxBytes ?? OUTBOX_BYTES,
      files: this.disk.boot(),
    });
    const { acknowledged, nextSequence } = outbox;
    await outbox.close();
    return { acknowledged, next: nextSequence };
  }

  async #work(process: Process, signal: AbortSignal): Promise<void> {
    const { name, network, ledger, identity } = this.#options;
    const files = this.disk.boot();
    await files.mkdir(FOLDER, { recursive: true });
    const known = (await loadIdentity(`${FOLDER}/identity.json`, files)) ?? identity;
    await work(
      {
        clock: process.clock,
        random: process.random,
        log: (level, message, fields) => this.#log(level, message, fields),
        version: "sim",
        identity: known,
        folder: FOLDER,
        files,
        outboxMaxBytes: this.#options.outboxBytes ?? OUTBOX_BYTES,
        isTunnelOpen: () => false,
        transport: network.transportOf(name, process),
        exec: simulatedExec({ host: name, process, ledger }),
        facts: factsOf(name),
      },
      signal,
    );
  }

  #log(level: string, message: string, fields: Readonly<Record<string, unknown>> = {}): void {
    const { name, world, ledger } = this.#options;
    world.remark(`${name} ${level} ${message} ${JSON.stringify(fields)}`);
    if (/^((not |dis)?connected)$/.test(message)) this.#linked = message === "connected";
    if (message === "connected") ledger.connected(name, Number(fields.epoch));
    if (message === "desired state") ledger.policies.set(name, Number(fields.policies));
  }
}

function factsOf(host: string) {
  const values = { load_1m: "0" };
  return {
    read: () => Promise.resolve({ host, os: "sim", arch: "sim", addresses: ["10.0.0.1"], pid: 1, values }),
    values: () => Promise.resolve(values),
  };
}
