import type { Fetch } from "../../../common/client/index.ts";
import type { Clock } from "../../../common/time.ts";
import type { Transport } from "./transport.ts";

interface ProcessWords {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly execArgv: readonly string[];
}

/** The `fetch` of the command line. With proxies of the environment, which Node has on request, it is that of Node. */
export function fetchFor({ env, execArgv }: ProcessWords, clock: Pick<Clock, "after">): Fetch {
  const flags = [...execArgv, ...(env["NODE_OPTIONS"] ?? "").split(/\s+/)];
  if (env["NODE_USE_ENV_PROXY"] === "1" || flags.includes("--use-env-proxy")) return (url, init) => fetch(url, init);
  let transport: Promise<Transport> | undefined;
  return async (url, init) => {
    transport ??= import("./transport.ts").then(({ Transport: Loaded }) => new Loaded(clock));
    return (await transport).fetch(url, init);
  };
}
