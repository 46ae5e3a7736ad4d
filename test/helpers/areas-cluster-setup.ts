import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import type { ClusterSettings } from "../../deploy/local/cluster.ts";
import { ClusterAdmin } from "./cluster-admin.ts";

/** A name space for the run of the area tests; in a cluster that goes on nothing is left after it. */
export function setup(project: TestProject): (() => Promise<void>) | undefined {
  const prefix = `a${randomBytes(4).toString("hex")}`;
  project.provide("areasPrefix", prefix);
  const { cluster } = project.getProvidedContext();
  return cluster.available && !cluster.endsWithRun ? () => clean(cluster.settings, prefix) : undefined;
}

async function clean(settings: ClusterSettings, prefix: string): Promise<void> {
  const admin = await ClusterAdmin.connect(settings);
  await admin.remove(prefix);
  await admin.close();
}
