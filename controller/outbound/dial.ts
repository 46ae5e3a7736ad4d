import { connect, isIP } from "node:net";
import { isAppError } from "../../common/errors.ts";
import { checkedLookup, closed, type ExchangeOptions } from "./exchange.ts";

export interface Dialled {
  /** A name or an address. */
  readonly host: string;
  readonly port: number;
}

/**
 * True if a connection is accepted; it is closed at once. False if it fails or the signal fires. `AppError("denied")`
 * for an address that is not open.
 */
export async function dial(
  { host, port }: Dialled,
  { open, resolve, signal }: Pick<ExchangeOptions, "open" | "resolve" | "signal">,
): Promise<boolean> {
  if (isIP(host) !== 0 && !open.includes(host)) throw closed(host);
  return new Promise((settle, reject) => {
    const socket = connect({ host, port, lookup: checkedLookup(open, resolve) });
    const stop = (): void => void socket.destroy(new Error("It takes too long."));
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    socket.once("connect", () => {
      settle(true);
      socket.destroy();
    });
    socket.once("error", (error) => (isAppError(error) ? reject(error) : settle(false)));
    socket.once("close", () => signal.removeEventListener("abort", stop));
  });
}
