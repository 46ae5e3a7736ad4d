import type { LiveSession } from "../session/live-session.ts";
import type { CommandListener, PeerCall, PeerWatch } from "../types.ts";
import { type CommandListeners, keyOf } from "./listeners.ts";

/** A command sent on behalf of another controller. */
interface Served {
  readonly watch: PeerWatch;
  readonly epoch: number;
  readonly listener: CommandListener;
  readonly digests: ReadonlySet<string>;
}

interface ServedDependencies {
  readonly live: (tenant: string, host: string) => LiveSession | undefined;
  readonly listeners: CommandListeners;
  readonly cancel: (of: { readonly tenant: string; readonly host: string; readonly commandId: string }) => void;
}

/** Commands that this controller sends on behalf of others, because it holds the sessions of their hosts. */
export class ServedCommands {
  readonly #with: ServedDependencies;
  readonly #served = new Set<Served>();

  constructor(dependencies: ServedDependencies) {
    this.#with = dependencies;
  }

  /**
   * Sends a command of another controller in the session of its host and reports its progress. Returns `undefined` if
   * no session is here.
   */
  serve(watch: PeerWatch, listener: CommandListener): (PeerCall & { readonly epoch: number }) | undefined {
    const { tenant, host, command } = watch;
    const session = this.#with.live(tenant, host);
    if (!session) return undefined;
    const key = keyOf(tenant, host, command.id);
    const files = command.body?.$case === "deploy" ? command.body.value.files : [];
    const served: Served = {
      watch,
      epoch: session.epoch,
      listener,
      digests: new Set(files.map((file) => file.digest)),
    };
    this.#served.add(served);
    this.#with.listeners.add(key, listener);
    session.send({ $case: "command", value: { ...command, epoch: session.epoch } });
    return {
      epoch: session.epoch,
      cancel: () => this.#with.cancel({ tenant, host, commandId: command.id }),
      end: () => {
        this.#served.delete(served);
        this.#with.listeners.remove(key, listener);
      },
    };
  }

  /** Tells the other controllers that the session of the host is over. */
  left({ tenant, host }: { readonly tenant: string; readonly host: string }, epoch: number): void {
    for (const served of [...this.#served]) {
      const { watch, listener } = served;
      if (served.epoch === epoch && watch.tenant === tenant && watch.host === host) listener.sessionOver?.();
    }
  }

  /** True if the content belongs to a deployment that the host is working on. */
  refersTo(tenant: string, host: string, digest: string): boolean {
    for (const { watch, digests } of this.#served) {
      if (watch.tenant === tenant && watch.host === host && digests.has(digest)) return true;
    }
    return false;
  }
}
