from .loss import Loss as Loss
