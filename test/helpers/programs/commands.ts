import { openWorld, type World, type WorldOptions } from "../../security/world.ts";
import { PASSWORD } from "../http/http-app.ts";
import { TestCommandLine, type Ran, type RunOptions } from "./command-line.ts";

/** The command line, and a whole controller in this process that it calls as the administrator. */
export interface Commands extends AsyncDisposable {
  readonly world: World;
  readonly url: string;
  readonly line: TestCommandLine;
  /** Runs a command. A text is split at its blanks. */
  readonly odp: (words: string | readonly string[], options?: RunOptions) => Promise<Ran>;
  /** The answer of a command that must succeed without a note. */
  readonly json: (words: string) => Promise<unknown>;
}

export async function openCommands(options: WorldOptions = {}): Promise<Commands> {
  const world = await openWorld(options);
  const url = await world.app.listen({ host: "127.0.0.1", port: 0 });
  const line = await TestCommandLine.open();
  const odp: Commands["odp"] = (words, { environment = {}, ...rest } = {}) =>
    line.run(typeof words === "string" ? words.split(" ") : words, {
      ...rest,
      environment: { ODP_URL: url, ODP_PASSWORD: PASSWORD, ...environment },
    });
  return {
    world,
    url,
    line,
    odp,
    async json(words) {
      const { out, err, code } = await odp(`${words} -o json`);
      if (code !== 0 || err !== "") throw new Error(`${words} ended with ${code}: ${err}`);
      return JSON.parse(out);
    },
    async [Symbol.asyncDispose]() {
      world.app.server.closeAllConnections();
      await line[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
}
