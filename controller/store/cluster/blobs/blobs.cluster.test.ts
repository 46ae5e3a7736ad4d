import { describeCluster, openClusterSubject } from "../../../../test/helpers/cluster/cluster.ts";
import { blobsContract } from "../../contract/blobs.ts";

describeCluster("contract", () => blobsContract("cluster", openClusterSubject));
