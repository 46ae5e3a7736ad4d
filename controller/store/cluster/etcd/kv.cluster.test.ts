import { describeCluster, openClusterSubject } from "../../../../test/helpers/cluster/cluster.ts";
import { kvContract } from "../../contract/kv.ts";

describeCluster("contract", () => kvContract("cluster", openClusterSubject));
