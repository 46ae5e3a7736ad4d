import { Type, type Static } from "typebox";
import { ConsoleLogFollow, ConsoleLogName, ConsoleLogPage, ConsoleLogRead } from "../../../common/api/consolelog.ts";
import { endpoint, type Endpoint, type ServerEvent } from "../../http/interface/endpoint.ts";
import { followOnSocket } from "../../http/sockets/following.ts";
import { socketEndpoint, type SocketEndpoint } from "../../http/sockets/socket.ts";
import { CONSOLE_LOG_KINDS, type ConsoleLogKind } from "./classes.ts";
import type { ConsoleLogService, LogPage, LogSelection } from "./service.ts";

const SAID_BY: Readonly<Record<ConsoleLogKind, string>> = {
  rule: "a rule",
  serverjs: "a script",
  trigger: "a trigger",
};

export function consoleLogRoutes(logs: ConsoleLogService): readonly Endpoint[] {
  return CONSOLE_LOG_KINDS.flatMap((kind) => [
    endpoint({
      method: "GET",
      path: `/consolelog/${kind}`,
      permission: "consolelog:read",
      summary: `What ${SAID_BY[kind]} had to say, the oldest first, from a position on`,
      input: ConsoleLogRead,
      output: ConsoleLogPage,
      handler: async ({ principal, input, signal }) => ({
        message: sentPage(await logs.read(principal, selectionOf(kind, input), { ...input, signal })),
      }),
    }),
    endpoint({
      method: "DELETE",
      path: `/consolelog/${kind}`,
      permission: "consolelog:write",
      summary: `Remove what ${SAID_BY[kind]} had to say`,
      input: ConsoleLogName,
      output: Type.String(),
      handler: async ({ principal, input: { name }, signal }) => {
        await logs.remove(principal, { kind, name }, signal);
        return { message: "" };
      },
    }),
    endpoint({
      method: "DELETE",
      path: `/consolelog/${kind}/truncate`,
      permission: "consolelog:write",
      summary: `Remove all entries of the kind ${kind}`,
      input: Type.Object({}),
      output: Type.String(),
      handler: async ({ principal, signal }) => {
        await logs.truncate(principal, kind, signal);
        return { message: "" };
      },
    }),
    endpoint({
      method: "GET",
      path: followPath(kind),
      permission: "consolelog:read",
      events: true,
      summary: followSummary(kind),
      input: ConsoleLogFollow,
      output: ConsoleLogPage,
      handler: async ({ principal, input, client, signal, present }) => {
        // The position in the client's Last-Event-ID takes precedence over the one in the URL.
        const reader = { position: client.lastEventId ?? input.position, signal, present };
        return { events: eventsOf(sentPages(await logs.follow(principal, selectionOf(kind, input), reader))) };
      },
    }),
  ]);
}

export function consoleLogSockets(logs: ConsoleLogService): readonly SocketEndpoint[] {
  return CONSOLE_LOG_KINDS.map((kind) =>
    socketEndpoint({
      path: followPath(kind),
      permission: "consolelog:read",
      summary: `${followSummary(kind)}, as JSON text frames`,
      input: ConsoleLogFollow,
      frames: ConsoleLogPage,
      open: ({ principal, input, line, present }) => {
        const reader = { position: input.position, signal: line.closed, present };
        void followOnSocket(line, async () =>
          sentPages(await logs.follow(principal, selectionOf(kind, input), reader)),
        );
      },
    }),
  );
}

function followPath(kind: ConsoleLogKind): string {
  return `/consolelog/${kind}/follow`;
}

function followSummary(kind: ConsoleLogKind): string {
  return `Follows what ${SAID_BY[kind]} has to say, from a position on`;
}

function selectionOf(kind: ConsoleLogKind, input: Static<typeof ConsoleLogFollow>): LogSelection {
  const { name, level = [], levels = [], mintime, maxtime } = input;
  return {
    kind,
    name,
    levels: [...level, ...levels],
    ...(mintime !== undefined && { mintime }),
    ...(maxtime !== undefined && { maxtime }),
  };
}

type SentPage = Static<typeof ConsoleLogPage>;

/** Clients get times as text; rows of the class have numbers. */
function sentPage({ logs, position }: LogPage): SentPage {
  const sent = logs.map(({ edtime, sttime, ...entry }) => ({
    edtime: new Date(edtime).toISOString(),
    ...(sttime !== undefined && { sttime: new Date(sttime).toISOString() }),
    ...entry,
  }));
  return { logs: sent, position };
}

async function* sentPages(pages: AsyncIterable<LogPage>): AsyncGenerator<SentPage> {
  for await (const page of pages) yield sentPage(page);
}

/** The id of each event is the position after it, so that a reconnecting client continues there. */
async function* eventsOf(pages: AsyncIterable<SentPage>): AsyncGenerator<ServerEvent> {
  for await (const page of pages) yield { id: page.position, data: page };
}
