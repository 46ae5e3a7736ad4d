import type { Execution } from "../../controller/areas/jobs/index.ts";
import type { MemoryDatabase } from "../helpers/engines/memory/engine.ts";
import { Controller } from "./controller.ts";
import { Host } from "./host.ts";
import { Ledger } from "./ledger.ts";
import { Network } from "./network.ts";
import { NO_STORE_FAULTS } from "./store.ts";
import { ADMIN, addressOf, CONTROLLERS, HOSTS, RULE, ruleText, type Template } from "./template.ts";
import { World } from "./world.ts";

export interface HistoryOptions {
  readonly seed: number;
  readonly template: Template;
  readonly controllers: number;
  readonly hosts: number;
  readonly tracing?: boolean;
  /** Starts later than other histories by this time. */
  readonly laterMs?: number;
  readonly outboxBytes?: number;
}

/** A requested job, and the facts about it that are known from outside. */
export interface AskedJob {
  readonly name: string;
  readonly hosts: readonly string[];
  readonly deadlineMs: number;
  /** Absent if no answer reported its start. */
  runId?: string;
  /** Maps a host to the final state that the caller was told. */
  readonly told: Map<string, string>;
}

const JOB = "remote_command@system/common";

/** An installation on which a test can work and cause faults. One seed determines everything. */
export class History {
  readonly world: World;
  readonly database: MemoryDatabase;
  readonly network: Network;
  readonly ledger = new Ledger();
  readonly controllers: readonly Controller[];
  readonly hosts: readonly Host[];
  readonly jobs: AskedJob[] = [];
  readonly edits: string[] = [];

  constructor({ seed, template, controllers, hosts, tracing, laterMs, outboxBytes }: HistoryOptions) {
    const world = new World({
      seed,
      startMs: template.startMs + (laterMs ?? 0),
      ...(tracing === undefined ? {} : { tracing }),
    });
    this.world = world;
    this.database = template.database.fork(world.clock);
    this.network = new Network(world, {
      toAgent: (host, { frame }) => {
        if (frame?.$case === "command" && frame.value.body?.$case === "exec")
          this.ledger.told(host, frame.value.body.value.line.split(" ")[0] ?? "", frame.value.epoch);
      },
    });
    const { network, database, ledger } = this;
    this.controllers = CONTROLLERS.slice(0, controllers).map(
      (name) => new Controller({ name, world, database, network }),
    );
    this.hosts = HOSTS.slice(0, hosts).flatMap((name) => {
      const identity = template.identities.get(name);
      const addresses = this.controllers.map((controller) => addressOf(controller.name));
      return identity
        ? [
            new Host({
              name,
              world,
              network,
              ledger,
              identity: { ...identity, controllers: addresses },
              ...(outboxBytes && { outboxBytes }),
            }),
          ]
        : [];
    });
  }

  async begin(policies: readonly string[]): Promise<void> {
    for (const controller of this.controllers) await controller.start();
    const [first] = this.controllers;
    const services = first?.services;
    if (!services) throw new Error("No controller.");
    for (const name of policies)
      await this.world.settle(
        services.policies.deploy(
          ADMIN,
          name,
          this.hosts.map((host) => host.name),
        ),
      );
    for (const host of this.hosts) host.start();
  }

  /** Calls any controller that runs. */
  runJob(command: {
    readonly ms: number;
    readonly lines: number;
    readonly code: number;
    readonly timeoutS: number;
  }): void {
    const { world } = this;
    const services = this.#anyServices();
    if (!services) return;
    const name = `job${this.jobs.length}`;
    const hosts = this.hosts.map((host) => host.name);
    const asked: AskedJob = { name, hosts, deadlineMs: world.nowMs + command.timeoutS * 1_000, told: new Map() };
    this.jobs.push(asked);
    world.note(`${name} is asked for`);
    const cmd = `${name} ms=${command.ms} lines=${command.lines} code=${command.code}`;
    const param = JSON.stringify({ "HOST!": hosts, cmd, timeout: command.timeoutS });
    services.runs.execute(ADMIN, JOB, { param }).then(
      (execution) => this.#follow(asked, execution),
      (error: unknown) => world.note(`${name}: ${String(error)}`),
    );
  }

  /** From now on the rule stores its lines in another class. */
  editRule(): void {
    const services = this.#anyServices();
    if (!services) return;
    const path = this.edits.length % 2 === 0 ? "/matrix/line2" : "/matrix/line";
    this.edits.push(path);
    this.world.note(`the rule's class becomes ${path}`);
    services.rules
      .put(ADMIN, RULE, ruleText(path))
      .catch((error: unknown) => this.world.note(`rule: ${String(error)}`));
  }

  /** Ends all faults and starts all programs. */
  async heal(): Promise<void> {
    this.world.note("all is well again");
    this.network.heal();
    this.network.latency = { fromMs: 0.2, toMs: 5 };
    const slowestMs = Math.max(...this.controllers.map(({ faults }) => 2 * faults.slowMaxMs), this.network.slowestMs);
    for (const controller of this.controllers) {
      Object.assign(controller.faults, NO_STORE_FAULTS);
      controller.resume();
      if (!controller.process?.alive) await controller.start();
    }
    for (const host of this.hosts) if (!host.running) host.start();
    // A call in progress when the faults end may still fail after its round trip, and a slow frame delays those behind
    // it.
    await this.world.advance(slowestMs);
  }

  #follow(asked: AskedJob, { runId, finished }: Execution): void {
    asked.runId = runId;
    finished.then(
      (runs) => {
        for (const { host, state } of runs) asked.told.set(host, state);
        this.world.note(`${asked.name} ended: ${runs.map(({ host, state }) => `${host} ${state}`).join(", ")}`);
      },
      (error: unknown) => this.world.note(`${asked.name} broke off: ${String(error)}`),
    );
  }

  #anyServices() {
    const living = this.controllers.flatMap((controller) => controller.services ?? []);
    const [first, ...rest] = living;
    return first && this.world.pick([first, ...rest]);
  }
}
