// Structures of the runtime's interface, as its headers lay them out.
#ifndef ASCENDSIM_ABI_H
#define ASCENDSIM_ABI_H

#include <stdint.h>

typedef struct {
  uint32_t id;
  int32_t type;  // aclrtMemLocationType
} aclrtMemLocation;

typedef struct {
  aclrtMemLocation location;
  uint32_t pageSize;
  uint32_t rsv[4];
} aclrtPtrAttributes;

typedef struct {
  int32_t handleType;
  int32_t allocationType;
  int32_t memAttr;
  aclrtMemLocation location;
  uint64_t reserve;
} aclrtPhysicalMemProp;

typedef struct {
  int32_t flags;
  aclrtMemLocation location;
  uint8_t rsv[12];
} aclrtMemAccessDesc;

typedef struct {
  aclrtMemLocation dstLoc;
  aclrtMemLocation srcLoc;
  uint8_t rsv[16];
} aclrtMemcpyBatchAttr;

#endif
