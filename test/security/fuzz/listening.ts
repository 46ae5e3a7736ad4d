import { allows } from "../../../controller/areas/permissions/index.ts";
import { readInput } from "../../../controller/http/input/input.ts";
import { answerOf } from "../answering.ts";
import type { DrawnCall } from "../draw.ts";
import type { Person } from "./people.ts";
import type { Round } from "./round.ts";
import type { DrawnSocket } from "./ways.ts";

/** Sockets and event streams open at a time. Another one closes the oldest. */
const OPEN_MAX = 32;

/** Receivers of sockets and event streams. The calls that are made meanwhile cause what they are told. */
export class Listening {
  readonly #open: AbortController[] = [];
  /** Number of frames and events so far. */
  heard = 0;
  /** Frames and events that their receivers may not see. */
  readonly leaks: string[] = [];

  socket(by: Person, { socket, input }: DrawnSocket): void {
    if (!allows(by.principal, socket.permission)) return;
    const send = (text: string): void => this.#take(by, `${socket.path} ${JSON.stringify(input)}`, text);
    const closed = this.#begin();
    const line = {
      send,
      sent: (text: string) => Promise.resolve((send(text), !closed.aborted)),
      end: () => {},
      closed,
    };
    const present = () => Promise.resolve(by.principal);
    try {
      const sources = { path: new Map(), query: new Map(), body: new Map(), bodyIsJson: true };
      for (const [name, value] of Object.entries(input)) sources.body.set(name, [value]);
      socket.open({ principal: by.principal, input: readInput(socket, sources) as never, line, present });
    } catch (error) {
      send(error instanceof Error ? error.message : String(error));
    }
  }

  stream({ folder }: Round, by: Person, call: DrawnCall): void {
    const what = `${call.endpoint.path} ${JSON.stringify(call.input)}`;
    const heard = (text: string): void => this.#take(by, what, text);
    void answerOf(call, { principal: by.principal, signal: this.#begin(), folder, heard }).then(heard);
  }

  close(): void {
    for (const one of this.#open.splice(0)) one.abort();
  }

  #begin(): AbortSignal {
    if (this.#open.length >= OPEN_MAX) this.#open.shift()?.abort();
    const closing = new AbortController();
    this.#open.push(closing);
    return closing.signal;
  }

  #take(by: Person, what: string, text: string): void {
    this.heard++;
    if (by.mark.test(text)) this.leaks.push(`${by.login} was told by ${what}: ${text.slice(0, 2_000)}`);
  }
}
