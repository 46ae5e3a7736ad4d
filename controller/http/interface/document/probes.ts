import { operationId } from "./names.ts";
import { TEXT, type Json } from "./schemas.ts";

/** The operations that belong to no area. They need no sign-in. */
export const PROBES: Readonly<Record<string, Json>> = {
  "/healthz": probe("/healthz", "Whether the controller runs", {
    "200": {
      description: "It runs.",
      content: jsonOf({ status: { const: "ok", type: "string", description: "Always ok" } }),
    },
  }),
  "/readyz": probe("/readyz", "Whether the controller can work: its stores answer", {
    "200": {
      description: "It can work, with fewer nodes when some are lost.",
      content: jsonOf({
        status: { const: "ok", type: "string", description: "Always ok" },
        lost: { type: "array", items: TEXT, description: "Lost nodes; absent: none" },
        warnings: {
          type: "array",
          items: { type: "string" },
          description: "What waits for an operator; absent: nothing",
        },
        damaged: { type: "array", items: { type: "object" }, description: "Stores with damaged rows; absent: none" },
      }),
    },
    "503": {
      description: "It cannot work.",
      content: { "application/json": { schema: { $ref: "#/components/schemas/Failure" } } },
    },
  }),
  "/metrics": probe("/metrics", "Figures for Prometheus, for the addresses of the setting metrics_readers", {
    "200": { description: "The figures.", content: { "text/plain": { schema: TEXT } } },
    "403": { $ref: "#/components/responses/Failure403" },
    "500": { $ref: "#/components/responses/Failure500" },
  }),
  "/openapi.json": probe("/openapi.json", "This document", {
    "200": { description: "The document.", content: { "application/json": { schema: { type: "object" } } } },
    "304": { description: "The client has this version." },
  }),
};

function probe(path: string, summary: string, responses: Json): Json {
  return { operationId: operationId("GET", path), summary, tags: ["probes"], security: [], responses };
}

function jsonOf(properties: Json): Json {
  return { "application/json": { schema: { type: "object", required: ["status"], properties } } };
}
