import type { FastifyInstance } from "fastify";
import { AppError, errorText } from "../../../common/errors.ts";
import { HTTP_BACKLOG_CONNECTIONS } from "../../../common/limits.ts";

interface Place {
  readonly host: string;
  readonly port: number;
}

/**
 * Returns the address and the port that was opened (`port` 0: any free port). `AppError("unavailable")` that names the
 * port if it cannot be opened.
 */
export async function listen(
  http: Pick<FastifyInstance, "listen">,
  { host, port }: Place,
): Promise<{ readonly url: string; readonly port: number }> {
  try {
    const url = await http.listen({ host, port, backlog: HTTP_BACKLOG_CONNECTIONS });
    // The URL omits the default port.
    return { url, port: Number(new URL(url).port || 80) };
  } catch (error) {
    const reason = `The HTTP port ${host}:${port} cannot be opened: ${errorText(error)}`;
    throw new AppError("unavailable", reason, { cause: error });
  }
}
