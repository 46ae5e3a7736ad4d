import { randomBytes } from "node:crypto";
import { join } from "node:path";
import { runAgent } from "../../../agent/agent.ts";
import { readConfig } from "../../../agent/config.ts";
import { realClock } from "../time/clock.ts";
import type { TestHosts } from "./hosts.ts";

export interface RealAgent {
  stop(): Promise<void>;
}

/** Starts the real agent in this process, with its files below `folder`. It enrols, and is connected when this resolves. */
export async function startRealAgent(at: TestHosts, host: string, folder: string): Promise<RealAgent> {
  const { token } = await at.hosts.tokens.create(at.principal(), { host });
  const config = readConfig(
    ["--controller", at.url, "--token", token, "--dir", join(folder, host), "--name", host],
    {},
  );
  const random = { next: () => Math.random(), bytes: (count: number) => new Uint8Array(randomBytes(count)) };
  const world = {
    clock: realClock,
    random,
    log: () => undefined,
    environment: { PATH: process.env.PATH },
    version: "test",
  };
  const online = new Promise<void>((resolve) => {
    const stop = at.hosts.onPresence((event) => {
      if (event.host !== host || !event.online) return;
      stop();
      resolve();
    });
  });
  const ending = new AbortController();
  const running = runAgent(config, world, ending.signal);
  await Promise.race([online, running]);
  return {
    stop: () => {
      ending.abort();
      return running;
    },
  };
}
