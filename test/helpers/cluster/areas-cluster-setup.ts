import { randomBytes } from "node:crypto";
import type { TestProject } from "vitest/node";
import type { ClusterSettings } from "../../../deploy/local/cluster.ts";
import { ClusterAdmin } from "./admin.ts";

/** Sets the prefix for this run of the area tests. A cluster that outlives the run keeps none of their data. */
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
