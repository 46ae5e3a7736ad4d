import { errorText } from "../../../../common/errors.ts";
import { PRESENCE_SWEEP_AGAIN_MS, PRESENCE_SWEEP_MS, PRESENCE_SWEEP_PARALLEL } from "../../../../common/limits.ts";
import { wait } from "../../../../common/time.ts";
import type { Runtime } from "../../../runtime.ts";
import type { KvStore } from "../../../store/kv.ts";
import type { HostStatus } from "../status.ts";
import type { Controllers } from "../types.ts";
import { HELD, namesIn, type HostName, type Presence } from "./presence.ts";

export interface DepartedSessionsDependencies {
  /** The system's KvStore. */
  readonly kv: KvStore;
  readonly runtime: Runtime;
  readonly presence: Presence;
  readonly status: HostStatus;
  readonly controllers: Controllers;
}

/**
 * Marks hosts as offline if their controller is gone and they did not connect to another one. The controller with the
 * smallest id does this; if two do it at once, no harm is done. The cost depends only on the number of sessions that
 * the lost controller held.
 */
export class DepartedSessions {
  readonly #with: DepartedSessionsDependencies;
  readonly #stop = new AbortController();
  #soon = new AbortController();
  #forgetListener: () => void = () => undefined;
  #running: Promise<void> = Promise.resolve();

  constructor(dependencies: DepartedSessionsDependencies) {
    this.#with = dependencies;
  }

  start(): void {
    this.#forgetListener = this.#with.controllers.onChange(() => this.#soon.abort());
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#forgetListener();
    this.#stop.abort();
    await this.#running;
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#with.runtime;
    while (!this.#stop.signal.aborted) {
      this.#soon = new AbortController();
      const isDone = await this.#sweep().catch((error: unknown) => {
        log.warn({ reason: errorText(error) }, "hosts whose controller is gone are looked for again later");
        return false;
      });
      const pauseMs = isDone ? PRESENCE_SWEEP_MS : PRESENCE_SWEEP_AGAIN_MS;
      await wait(clock, pauseMs, AbortSignal.any([this.#stop.signal, this.#soon.signal]));
    }
  }

  /** Returns false if work remains. */
  async #sweep(): Promise<boolean> {
    const { controllers, status } = this.#with;
    await status.again();
    if (controllers.all().some(({ id }) => id < controllers.own)) return true;
    let isDone = true;
    for await (const controller of this.#noted())
      if (!controllers.has(controller)) isDone = (await this.#end(controller)) && isDone;
    return isDone;
  }

  /** Yields every controller that held sessions, with one read per controller. */
  async *#noted(): AsyncGenerator<string> {
    let after: string | undefined;
    while (!this.#stop.signal.aborted) {
      const page = await this.#with.kv.list(HELD, { limit: 1, ...(after !== undefined && { after }) });
      const [entry] = page.entries;
      if (entry === undefined) return;
      const [controller = ""] = entry.key.slice(HELD.length).split("/");
      yield controller;
      after = `${HELD}${controller}/\u{10ffff}`;
    }
  }

  async #end(controller: string): Promise<boolean> {
    const prefix = `${HELD}${controller}/`;
    let isDone = true;
    let after: string | undefined;
    do {
      const options = { limit: PRESENCE_SWEEP_PARALLEL, ...(after !== undefined && { after }) };
      const page = await this.#with.kv.list(prefix, options);
      const names = page.entries.map(({ key }) => namesIn(key.slice(prefix.length)));
      const ended = await Promise.all(names.map((name) => this.#endOne(controller, name)));
      isDone &&= !ended.includes(false);
      after = page.next;
    } while (after !== undefined && !this.#stop.signal.aborted);
    return isDone;
  }

  async #endOne(controller: string, name: HostName): Promise<boolean> {
    const { presence, status } = this.#with;
    const holder = await presence.holderOf(name.tenant, name.host);
    // The lease of its sessions lasts slightly longer than the lease by which other controllers see it.
    if (holder?.controller === controller) return false;
    if (holder === undefined) return status.changed(name, controller);
    return presence.forget(controller, name);
  }
}
