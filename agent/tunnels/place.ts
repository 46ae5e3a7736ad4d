import { lookup as lookUp } from "node:dns/promises";
import { BlockList, connect, type LookupFunction, type Socket } from "node:net";
import { AppError, errorText, isAppError } from "../../common/errors.ts";
import { TUNNEL_CONNECT_MS } from "../../common/limits.ts";
import type { Clock } from "../../common/time.ts";

interface Place {
  readonly address: string;
  readonly port: number;
}

/** Connects to an address. The socket is paused. `AppError` with the reason when there is no connection. */
export function connectedTo({ address, port }: Place, clock: Clock, signal: AbortSignal): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: address, port, noDelay: true, lookup: lookupOf(address) });
    const settle = (): void => {
      late();
      signal.removeEventListener("abort", ended);
      socket.removeAllListeners();
    };
    const fail = (error: Error): void => {
      settle();
      socket.on("error", () => undefined).destroy();
      reject(error);
    };
    const ended = (): void => fail(new AppError("cancelled", "the agent ended"));
    const late = clock.after(TUNNEL_CONNECT_MS, () =>
      fail(new AppError("deadline", `no answer within ${TUNNEL_CONNECT_MS} ms`)),
    );
    if (signal.aborted) return ended();
    signal.addEventListener("abort", ended, { once: true });
    socket.once("error", (error) => fail(asAppError(error)));
    socket.once("connect", () => {
      settle();
      resolve(socket.pause());
    });
  });
}

const REASONS: Readonly<Record<string, string>> = {
  ECONNREFUSED: "it refused the connection",
  EHOSTUNREACH: "there is no way to it",
  ENETUNREACH: "there is no way to it",
  ETIMEDOUT: "it did not answer",
  ENOTFOUND: "its name is not known there",
  EAI_AGAIN: "its name could not be looked up there",
};

function asAppError(error: Error): AppError {
  if (isAppError(error)) return error;
  const code = "code" in error ? String(error.code) : "";
  return new AppError("unavailable", REASONS[code] ?? errorText(error), { cause: error });
}

const OWN = new BlockList();
OWN.addSubnet("127.0.0.0", 8);
OWN.addSubnet("0.0.0.0", 8);
OWN.addAddress("::1", "ipv6");
OWN.addAddress("::", "ipv6");

/**
 * Looks up a name, and refuses one that leads to the jump host itself (`AppError("denied")`), no matter which server
 * resolves it. Programs that listen only on loopback trust every connection. A caller that wants loopback must give its
 * address or `localhost`.
 */
function lookupOf(name: string): LookupFunction {
  return (_name, options, done) => {
    lookUp(name, { ...options, all: true }).then(
      (found) => {
        const own = name === "localhost" ? undefined : found.find(isOwn);
        const [first] = found;
        if (own) done(new AppError("denied", `its name leads to ${own.address}, the jump host itself`), "");
        else if (options.all) done(null, found);
        else done(null, first?.address ?? "", first?.family);
      },
      (error: Error) => done(error, ""),
    );
  };
}

function isOwn({ address, family }: { readonly address: string; readonly family: number }): boolean {
  return OWN.check(address, family === 6 ? "ipv6" : "ipv4");
}
